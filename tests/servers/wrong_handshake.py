"""Answers the handshake wrongly, as its first argument says; afterwards `seen` returns the received methods.

With a second argument it also appends its pid to that file at each start.
"""

import os
import sys

from _kit import (
    LEGACY,
    MODERN,
    discovered,
    error_of,
    initialized,
    introduce,
    is_call,
    messages,
    result_of,
    send,
    text_of,
    write,
)


def nothing(_):
    return None


def answer_probe_late(message):
    send(discovered(late.pop()), initialized(message))


def two_answers(message):
    send(initialized(message), initialized(message, protocolVersion="2024-11-05", instructions="I lied"))


PROBES = {
    "silent on the probe": nothing,
    "late with the probe": lambda m: late.append(m),
    "garbled probe": lambda m: write(b'{"jsonrpc":"2.0","id":%d,"result":{{{\n' % m["id"]),
    "probe of the wrong shape": lambda m: send(result_of(m, {"supportedVersions": "all of them"})),
    "exits on the probe": lambda m: os._exit(3),
    "method not found": lambda m: send(error_of(m, -32601, "what?")),
    "a code nobody knows": lambda m: send(error_of(m, 7, "no")),
    "only legacy": lambda m: send(discovered(m, ["2025-06-18", "2024-11-05"])),
    "only the future": lambda m: send(discovered(m, ["2099-01-01"])),
    "unsupported, forever": lambda m: send(error_of(m, -32022, "no", {"supported": [MODERN]})),
    "unsupported, but legacy": lambda m: send(error_of(m, -32022, "no", {"supported": [LEGACY]})),
    "unsupported, without a word": lambda m: send(error_of(m, -32022, "no")),
}
GREETINGS = {
    "late with the probe": answer_probe_late,
    "unknown revision": lambda m: send(initialized(m, protocolVersion="1999-01-01")),
    "revision is a number": lambda m: send(initialized(m, protocolVersion=5)),
    "capabilities are a list": lambda m: send(initialized(m, capabilities=[])),
    "server info is a text": lambda m: send(initialized(m, serverInfo="me")),
    "result is a text": lambda m: send({"jsonrpc": "2.0", "id": m["id"], "result": "hello"}),
    "result is missing": lambda m: send({"jsonrpc": "2.0", "id": m["id"]}),
    "garbled greeting": lambda m: write(b'{"jsonrpc":"2.0","id":%d,"result":{{{\n' % m["id"]),
    "an error": lambda m: send(error_of(m, -32603, "not today \x1b[2J")),
    "silent on the greeting": nothing,
    "capabilities are null": lambda m: send(initialized(m, capabilities=None, serverInfo=None)),
    "two answers": two_answers,
}

lie = sys.argv[1]
late, seen = [], []
if len(sys.argv) > 2:
    with open(sys.argv[2], "a") as diary:
        diary.write(f"{os.getpid()}\n")
for message in messages():
    method = message["method"]
    seen.append(method)
    if method == "server/discover":
        PROBES.get(lie, lambda m: send(error_of(m, -32601, "what?")))(message)
    elif method == "initialize" and lie in GREETINGS:
        GREETINGS[lie](message)
    elif is_call(message, "seen"):
        send(text_of(message, " ".join(seen)))
    else:
        introduce(message, "seen")
