"""Appends its pid to the file in its first argument, and exits after the milliseconds in the second argument.

With a third argument, `mute`, it answers nothing until then; otherwise it serves.
"""

import os
import sys
import threading
import time

from _kit import messages, serve, write

diary, milliseconds, mute = sys.argv[1], int(sys.argv[2]), "mute" in sys.argv[3:]
with open(diary, "a") as file:
    file.write(f"{os.getpid()}\n")


def die():
    time.sleep(milliseconds / 1000)
    write(b"the database is locked\n", fd=2)
    os._exit(9)


threading.Thread(target=die, daemon=True).start()
if mute:
    for _ in messages():
        pass
    time.sleep(60)
serve()
