"""Answers a call with `megabytes` of text on one line: unparsable output, or a reply with or without an
end.
"""

import json

from _kit import arguments_of, serve, write

RESULT = b'"result":{"content":[{"type":"text","text":"'


def pour(call):
    asked = arguments_of(call)
    kind = asked["kind"]
    own_id = b'"id":' + json.dumps(call["id"]).encode()
    block = b"y" * 1_000_000
    if kind != "noise":
        write(b'{"jsonrpc":"2.0",' + (b"" if kind == "id_last" else own_id + b",") + RESULT)
    for _ in range(asked["megabytes"]):
        write(block)
    if kind == "reply":
        write(b'"}]}}\n')
    if kind == "id_last":
        write(b'"}]},' + own_id + b"}\n")


serve(pour, "pour")
