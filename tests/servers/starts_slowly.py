"""A correct server that answers only after the seconds in its first argument (`never` for never).

With a second argument it first asks for a password on both outputs, as programs for people do.
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
