"""Answers no `hold` until `release` answers all of them. `cancelled` returns which were cancelled."""

from _kit import introduce, is_call, messages, send, text_of

held, cancelled = [], []
for message in messages():
    if introduce(message, "hold", "release", "cancelled"):
        continue
    if message.get("method") == "notifications/cancelled":
        cancelled.append(message["params"]["requestId"])
    elif is_call(message, "hold"):
        held.append(message)
    elif is_call(message, "release"):
        send(*(text_of(each, "released") for each in held), text_of(message, str(len(held))))
        held.clear()
    elif is_call(message, "cancelled"):
        known = [each["id"] for each in held]
        send(text_of(message, " ".join(str(known.index(each)) for each in cancelled)))
