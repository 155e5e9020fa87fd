"""Has log levels: `say` sends a log message and writes a line to stderr; `level` returns the current level.

With the argument `legacy` or `modern` it supports that era only.
"""

import os
import sys

from _kit import (
    LEGACY,
    MODERN,
    arguments_of,
    discovered,
    error_of,
    initialized,
    is_call,
    listed,
    messages,
    notification,
    result_of,
    send,
    text_of,
    tool,
    write,
)

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
ERA = sys.argv[1] if len(sys.argv) > 1 else "legacy"
level = None

for message in messages():
    method = message.get("method")
    if method == "server/discover":
        send(discovered(message, [MODERN]) if ERA == "modern" else error_of(message, -32601, "unknown"))
    elif method == "initialize":
        send(initialized(message, protocolVersion=LEGACY, capabilities={"tools": {}, "logging": {}}))
    elif method == "tools/list":
        send(listed(message, tool("say"), tool("level"), tool("die")))
    elif method == "logging/setLevel":
        level = message["params"]["level"]
        send(result_of(message, {}))
    elif is_call(message):
        if ERA == "modern":
            level = message["params"]["_meta"].get("io.modelcontextprotocol/logLevel")
        given = arguments_of(message)
        if is_call(message, "die"):
            os._exit(1)
        elif is_call(message, "say"):
            if level is not None and LEVELS.index(given["level"]) >= LEVELS.index(level):
                said = {"level": given["level"], "logger": "desk", "data": given["text"]}
                send(notification("notifications/message", **said))
            write(f"stderr: {given['text']}\n".encode(), 2)
        send(text_of(message, str(level)))
