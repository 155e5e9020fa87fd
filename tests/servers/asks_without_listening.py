"""Sends `count` requests to the host in a row before it reads any answer."""

import json

from _kit import arguments_of, introduce, is_call, messages, send, text_of, write

for message in messages():
    if is_call(message, "pester"):
        count = arguments_of(message)["count"]
        for start in range(0, count, 100):
            questions = (
                {"jsonrpc": "2.0", "id": number, "method": "ping" if number % 2 else "roots/list"}
                for number in range(start, start + 100)
            )
            write(b"".join(json.dumps(question).encode() + b"\n" for question in questions))
        send(text_of(message, f"asked {count} times"))
    else:
        introduce(message, "pester")
