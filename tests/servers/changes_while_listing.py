"""Sends a list-changed notification together with its first list; `b` exists from then on."""

from _kit import introduce, is_call, listed, messages, notification, send, text_of, tool

names = ["a"]
for message in messages():
    if message.get("method") == "tools/list":
        send(listed(message, tools=[tool(name) for name in names]))
        if names == ["a"]:
            names.append("b")
            send(notification("notifications/tools/list_changed"))
    elif is_call(message):
        send(text_of(message, message["params"]["name"]))
    else:
        introduce(message)
