"""Writes exactly the bytes that a call gives.

`say(writes, chunk)`: each text is one write, one byte a character (Latin-1); `$ID` stands for the id of this
request. With a `chunk`, each text is written in pieces of that size with short pauses.
"""

import json
import time

from _kit import arguments_of, serve, write


def say(call):
    asked = arguments_of(call)
    own_id = json.dumps(call["id"]).encode()
    for text in asked["writes"]:
        data = text.encode("latin-1").replace(b"$ID", own_id)
        chunk = asked.get("chunk") or len(data)
        for at in range(0, len(data), chunk):
            write(data[at : at + chunk])
            if "chunk" in asked:
                time.sleep(0.0005)


serve(say, "say")
