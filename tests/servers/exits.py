"""Exits at the point that its first argument names: start, greeting (the handshake), list, or call.

Its second argument is the exit code or, if negative, the signal. It writes to stderr before it exits.
"""

import os
import sys

from _kit import introduce, messages, write

when, how = sys.argv[1], int(sys.argv[2])
MOMENTS = {"greeting": ("initialize", "server/discover"), "list": ("tools/list",), "call": ("tools/call",)}


def die():
    write(b"opening the database\n\x1b[31mdisk is \xff full\x1b[0m\n", fd=2)
    if how < 0:
        os.kill(os.getpid(), -how)
    os._exit(how)


if when == "start":
    die()
for message in messages():
    if message.get("method") in MOMENTS[when]:
        die()
    introduce(message, "act")
