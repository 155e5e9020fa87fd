"""Results that are large or odd: `act(how, …)`. Written piece by piece, so that the server stays small."""

import json

from _kit import arguments_of, serve, write

PIECE = 'A line of text, "quoted", with a tab\t, an é, a 😀 and a \\ in it.\n'


def begin(call, before=""):
    write(b'{"jsonrpc":"2.0","id":' + json.dumps(call["id"]).encode() + b',"result":{' + before.encode())


def text(call, asked):
    """`count` times the same line, as `ensure_ascii` writes it."""
    line = json.dumps(PIECE)[1:-1].encode() * 1000
    begin(call, '"content":[{"type":"text","text":"')
    for _ in range(asked["count"] // 1000):
        write(line)
    write(b'"}]}}\n')


def repeated(call, asked):
    """`before`, `count` times `piece`, `after`: the inside of the result."""
    begin(call, asked["before"])
    many = asked["piece"].encode() * 1000
    for _ in range(asked["count"] // 1000):
        write(many)
    write(asked["after"].encode() + b"}}\n")


def act(call):
    asked = arguments_of(call)
    {"text": text, "repeated": repeated}[asked["how"]](call, asked)


serve(act, "act")
