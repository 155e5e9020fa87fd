"""Reports progress of a call as fast as possible, `count` times (0: until its output is closed).

`kind`: growing, falling, of an unknown token, with a megabyte of text, or after the reply. It answers at the
end.
"""

from _kit import arguments_of, notification, progress_token_of, send, serve, text_of

KINDS = {
    "growing": lambda token, n: {"progressToken": token, "progress": n},
    "falling": lambda token, n: {"progressToken": token, "progress": -n},
    "foreign": lambda token, n: {"progressToken": f"not {token}", "progress": n},
    "wordy": lambda token, n: {"progressToken": token, "progress": n, "message": "\x1b[2J" + "w" * 1_000_000},
    "unreadable": lambda token, n: {"progressToken": token, "progress": "soon"},
}


def report(call):
    asked = arguments_of(call)
    shape, token = KINDS[asked["kind"]], progress_token_of(call)
    if asked.get("answer_first"):
        send(text_of(call, "done"))
    n = 0
    while not asked["count"] or n < asked["count"]:
        n += 1
        send(notification("notifications/progress", **shape(token, n)))
    if not asked.get("answer_first"):
        send(text_of(call, "done"))


serve(report, "report")
