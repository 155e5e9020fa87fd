"""Ignores the end of its input, SIGINT and SIGTERM."""

import signal

from _kit import serve, stay

for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
serve()
stay()
