"""Writes exactly the bytes it is told to.

`say(writes, chunk)`: each text goes out in a write of its own, one byte a character (Latin-1), with `$ID`
standing for the id of this request; given a `chunk`, in pieces of so many bytes, a little time between them.
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
