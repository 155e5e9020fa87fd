"""Greets nicely, and never answers when asked for its tools."""

from _kit import introduce, messages

for message in messages():
    if message.get("method") != "tools/list":
        introduce(message)
