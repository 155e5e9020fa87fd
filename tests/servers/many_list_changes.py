"""`storm` sends `count` list-changed notifications within some seconds; `lists` returns how often the list
was
read.
"""

import time

from _kit import arguments_of, introduce, is_call, messages, notification, send, text_of

CHANGED = [notification("notifications/tools/list_changed")]
read = 0
for message in messages():
    read += message.get("method") == "tools/list"
    if is_call(message, "storm"):
        asked = arguments_of(message)
        for _ in range(asked["count"] // 500):
            send(*CHANGED * 500)
            time.sleep(asked["over"] / (asked["count"] / 500))
        send(text_of(message, "over"))
    elif is_call(message, "lists"):
        send(text_of(message, str(read)))
    else:
        introduce(message, "storm", "lists")
