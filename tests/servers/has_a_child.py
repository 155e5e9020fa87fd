"""Has a child of its own; `child` tells its pid. Arguments:

stubborn: the child heeds no polite signal.  silent: it lets go of the output.  escapes: it starts a session
of its own.  daemon: it forks twice into a session of its own, and is adopted by init.  orphaning: the server
itself ends with its input, and leaves the child behind.  stranger: the child is another program, in a session
of its own and with an empty environment.
"""

import os
import sys

from _kit import send, serve, start_sleeper, stay, text_of

if "stranger" in sys.argv:
    import subprocess

    child = subprocess.Popen(["/bin/sleep", "3600"], start_new_session=True, env={}).pid
else:
    child = start_sleeper(
        stubborn="stubborn" in sys.argv,
        holds_output="silent" not in sys.argv,
        escapes="escapes" in sys.argv,
        forks_twice="daemon" in sys.argv,
    )
serve(lambda call: send(text_of(call, str(child))), "child")
if "orphaning" in sys.argv:
    os._exit(0)
stay()
