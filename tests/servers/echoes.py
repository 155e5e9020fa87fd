"""`say {canary}` returns its canary, after progress with the canary if requested. All received calls are
answered
together, the last first.
"""

import json
import os

from _kit import (
    discovered,
    error_of,
    initialized,
    listed,
    notification,
    progress_token_of,
    text_of,
    tool,
    write,
)

SCHEMA = {"type": "object", "properties": {"canary": {"type": "string"}}, "required": ["canary"]}


def answers(message):
    match message.get("method"):
        case "initialize":
            return [initialized(message)]
        case "server/discover":
            return [discovered(message)]
        case "tools/list":
            return [listed(message, tool("say", SCHEMA))]
        case "tools/call":
            canary, token = message["params"]["arguments"]["canary"], progress_token_of(message)
            told = [] if token is None else [progress(token, canary, 1), progress(token, canary, 2)]
            return [*told, text_of(message, canary)]
        case _:
            return [error_of(message, -32601, "unknown")] if "id" in message else []


def progress(token, canary, number):
    return notification("notifications/progress", progressToken=token, progress=number, message=canary)


rest = b""
while data := os.read(0, 1 << 20):
    *lines, rest = (rest + data).split(b"\n")
    replies = [answers(json.loads(line)) for line in lines if line]
    write(b"".join(json.dumps(each).encode() + b"\n" for reply in reversed(replies) for each in reply))
