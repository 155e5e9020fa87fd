"""Returns the first page of its list and never answers the request for the second."""

from _kit import introduce, is_call, listed, messages, send, text_of, tool

for message in messages():
    if message.get("method") == "tools/list":
        if "cursor" not in (message.get("params") or {}):
            send(listed(message, tools=[tool("first")], nextCursor="more"))
    elif is_call(message):
        send(text_of(message, message["params"]["name"]))
    else:
        introduce(message)
