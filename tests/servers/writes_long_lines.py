"""Writes a line that it builds itself: `say(head, part, times, tail)`.

The part is repeated between head and tail; `$ID` stands for the id of this request. Unless the line answers
the request, a valid reply follows.
"""

import json

from _kit import arguments_of, send, serve, text_of, write


def say(call):
    asked = arguments_of(call)
    line = asked["head"] + asked["part"] * asked["times"] + asked["tail"] + "\n"
    write(line.replace("$ID", json.dumps(call["id"])).encode())
    if "$ID" not in asked["head"]:
        send(text_of(call, "right"))


serve(say, "say")
