"""Returns results of any size: `act(before, piece, count, after)` gives the content of the result, with
`piece`
repeated.
"""

import json

from _kit import arguments_of, serve, write

AT_ONCE = 1000


def act(call):
    asked = arguments_of(call)
    piece, count = asked["piece"].encode(), asked["count"]
    write(b'{"jsonrpc":"2.0","id":' + json.dumps(call["id"]).encode() + b',"result":{')
    write(asked["before"].encode() + piece * (count % AT_ONCE))
    many = piece * AT_ONCE
    for _ in range(count // AT_ONCE):
        write(many)
    write(asked["after"].encode() + b"}}\n")


serve(act, "act")
