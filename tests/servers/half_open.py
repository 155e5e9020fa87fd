"""Lets go of half the conversation when `act` is called, and lives on. Its argument says how.

closes_output: stdout is closed.  stops_reading: stdin is not read any more.  closes_input: stdin is closed.
drains_first: says nothing before it has read all there is to read, and the reply is larger than a pipe.
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
