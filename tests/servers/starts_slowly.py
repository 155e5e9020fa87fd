"""Serves well, but only so many seconds after it was started (first argument; `never` for never).

With a second argument it prompts for a password on both outputs first, as programs do that expect a person.
"""

import sys
import time

from _kit import serve, write

when = sys.argv[1]
if len(sys.argv) > 2:
    write(b"Password: ")
    write(b"Password: ", fd=2)
while when == "never":
    time.sleep(60)
time.sleep(float(when))
serve()
