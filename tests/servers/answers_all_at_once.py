"""Collects calls until there are `together` of them, then answers all in one write, the newest first.

The last call may contain `stray`: text that is written before the answers, one byte a character (Latin-1);
`$ID` stands for the id of the oldest waiting call.
"""

import json

from _kit import arguments_of, send, serve, text_of, write

waiting = []


def collect(call):
    asked = arguments_of(call)
    waiting.append(call)
    if len(waiting) == asked["together"]:
        oldest = json.dumps(waiting[0]["id"]).encode()
        write(asked.get("stray", "").encode("latin-1").replace(b"$ID", oldest))
        send(*(text_of(each, f"reply to {arguments_of(each)['number']}") for each in reversed(waiting)))
        waiting.clear()


serve(collect, "collect")
