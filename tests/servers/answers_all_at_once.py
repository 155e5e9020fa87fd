"""Lets calls wait until there are `together` of them, then answers all in one write, the newest first."""

from _kit import arguments_of, send, serve, text_of

waiting = []


def collect(call):
    waiting.append(call)
    if len(waiting) == arguments_of(call)["together"]:
        send(*(text_of(each, f"reply to {arguments_of(each)['number']}") for each in reversed(waiting)))
        waiting.clear()


serve(collect, "collect")
