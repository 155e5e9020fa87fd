"""A launcher, like npx: starts the real server and ends; with `waits`, when its child ends.

With `daemon` the server runs in a session of its own.
"""

import os
import sys

from _kit import serve

child = os.fork()
if child == 0:
    if "daemon" in sys.argv:
        os.setsid()
    serve()
elif "waits" in sys.argv:
    os.waitpid(child, 0)
