"""Has a child process; `child` returns its pid. Arguments:

stubborn: the child ignores SIGINT and SIGTERM.  silent: it closes the output.  escapes: it starts its own
session.  daemon: it forks twice into its own session, and init becomes its parent.  orphaning: the server
ends with its input, and the child continues.  stranger: the child is another program, in its own session and
with an empty environment.
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
