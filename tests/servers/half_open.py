"""Closes one direction of its connection when `act` is called, and continues to run. Its argument is the way:

closes_output: stdout is closed.  stops_reading: stdin is not read any more.  closes_input: stdin is closed.
drains_first: it writes nothing before it has read all input, and the reply is larger than a pipe.
"""

import os
import sys

from _kit import arguments_of, send, serve, stay, text_of


def act(call):
    how = sys.argv[1]
    if how == "closes_output":
        os.close(1)
    elif how == "closes_input":
        os.close(0)
    elif how == "drains_first":
        send(text_of(call, arguments_of(call)["load"][::-1]))
        return
    stay()


serve(act, "act")
