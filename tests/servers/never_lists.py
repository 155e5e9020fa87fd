"""Answers the handshake correctly, and never answers a request for its tools."""

from _kit import introduce, messages

for message in messages():
    if message.get("method") != "tools/list":
        introduce(message)
