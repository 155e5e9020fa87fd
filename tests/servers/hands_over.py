"""A launcher, as npx is one: starts the server that serves, and ends; with `waits`, when its child does."""

import os
import sys

from _kit import serve

child = os.fork()
if child == 0:
    serve()
elif "waits" in sys.argv:
    os.waitpid(child, 0)
