"""`python one_at_a_time.py FOLDER COMMAND…` runs a command with its own home below the folder, while no other
one runs there. The conformance suite starts all of its clients at once.
"""

import fcntl
import os
import sys
import tempfile

folder, *command = sys.argv[1:]
lock = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT)
fcntl.flock(lock, fcntl.LOCK_EX)
os.set_inheritable(lock, True)  # held until the command ends
home = tempfile.mkdtemp(dir=folder)
env = {**os.environ, "HOME": home, "DRAGOMAN_CONFIG_DIR": os.path.join(home, ".dragoman")}
os.execve(command[0], command, env)
