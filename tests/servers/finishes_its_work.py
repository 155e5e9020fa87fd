"""Continues to work when its input ends: waits for the first file, then writes the second one.

A signal ends it at once, as it does most programs.
"""

import os
import sys
import time

from _kit import serve


def write_down(what):
    with open(sys.argv[2], "a") as diary:
        diary.write(what + "\n")


serve()
write_down("its input ended")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.005)
write_down("finished")
