"""Returns its environment and arguments, by the called tool: `result` and `large` as text, `structured` as
data,
`error` and `failure` as errors, `progress` and `log` during a call, `processes` with the command lines of all
processes, `crash` as last output. It writes the same to stderr at its start. With the argument `dies` it
exits after that.
"""

import json
import os
import sys
from pathlib import Path

from _kit import (
    error_of,
    introduce,
    is_call,
    messages,
    notification,
    progress_token_of,
    result_of,
    send,
    text_of,
)

# What an entry sets stands at the end, and is told first: little of it may be shown.
known = json.dumps({**dict(reversed(list(os.environ.items()))), "arguments": sys.argv[1:]})


def command_lines():
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue


TOOLS = ("result", "large", "structured", "error", "failure", "progress", "log", "processes", "crash")
sys.stderr.write(f"starting with {known}\n")
sys.stderr.flush()
if "dies" in sys.argv:
    sys.exit(3)
for message in messages():
    if introduce(message, *TOOLS) or not is_call(message):
        continue
    match message["params"]["name"]:
        case "structured":
            content = [{"type": "text", "text": known}]
            send(result_of(message, {"content": content, "structuredContent": {"known": known, known: 1}}))
        case "error":
            send(error_of(message, -32000, known, {"known": known}))
        case "failure":
            send(result_of(message, {"content": [{"type": "text", "text": known}], "isError": True}))
        case "progress":
            token = progress_token_of(message)
            told = notification("notifications/progress", progressToken=token, progress=1, message=known)
            send(told, text_of(message, "told"))
        case "log":
            send(notification("notifications/message", level="error", data=known), text_of(message, "told"))
        case "processes":
            send(text_of(message, "\n".join(command_lines())))
        case "large":
            send(text_of(message, (known + "\n" + "x" * 1000 + "\n") * 1000))
        case "crash":
            sys.stderr.write(f"last words: {known}\n")
            sys.stderr.flush()
            os._exit(9)
        case _:
            send(text_of(message, known))
