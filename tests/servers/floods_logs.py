"""Sends `count` log messages of a few bytes each before it answers."""

import json

from _kit import arguments_of, notification, send, serve, text_of, write

LINE = json.dumps(notification("notifications/message", level="info", data="x")).encode() + b"\n"


def chatter(call):
    count = arguments_of(call)["count"]
    for _ in range(count // 1000):
        write(LINE * 1000)
    send(text_of(call, f"said {count}"))


serve(chatter, "chatter")
