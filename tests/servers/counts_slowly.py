"""Counts to `to` and reports progress at every step; each step is allowed by another call."""

from _kit import arguments_of, notification, progress_token_of, send, serve, text_of


def count(call):
    to = arguments_of(call)["to"]
    for n in range(1, to + 1):
        send(
            notification(
                "notifications/progress", progressToken=progress_token_of(call), progress=n, total=to
            )
        )
    send(text_of(call, f"counted to {to}"))


serve(count, "count")
