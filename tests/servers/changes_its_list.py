"""Adds a tool with every `grow`, and sends `times` notifications that its list has changed."""

from _kit import arguments_of, introduce, is_call, messages, notification, send, text_of

extra = []
for message in messages():
    if is_call(message, "grow"):
        extra.append(f"grown_{len(extra)}")
        notices = [notification("notifications/tools/list_changed")] * arguments_of(message).get("times", 1)
        send(*notices, text_of(message, extra[-1]))
    else:
        introduce(message, "grow", *extra)
