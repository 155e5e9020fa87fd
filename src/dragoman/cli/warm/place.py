"""Where a local gateway listens, and what a caller must have in common with it.

There is one for each working directory. A caller uses it only if both see the same environment and the same
configuration files: rules, approvals and servers depend on them. Imports nothing that takes long to load.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dragoman import paths

FOLDER: Final = "warm"
LONGEST_PATH: Final = 100
"""How many bytes the path of a socket may have on every system."""
OF_TERMINALS: Final = frozenset(
    {"_", "COLORTERM", "COLUMNS", "DRAGOMAN_PLAIN", "LINES", "NO_COLOR", "OLDPWD", "PS1", "PWD", "SHLVL",
     "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "STY", "TERM", "TMUX", "TMUX_PANE", "TTY", "WINDOWID",
     "XDG_SESSION_ID"}
)  # fmt: skip
"""Variables that differ from one terminal to the next, and that no server or rule depends on."""
OF_TERMINAL_PROGRAMS: Final = ("GNOME_TERMINAL_", "ITERM_", "KITTY_", "KONSOLE_", "TERM_", "VTE_", "WT_")

Stamp = list[int] | None


def has_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def socket_path(cwd: str) -> Path:
    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:16]
    return paths.state_dir() / FOLDER / f"{digest}.sock"


def environment_digest(salt: str, environ: Mapping[str, str] = os.environ) -> str:
    """Of all variables that a server, a rule or a hook may depend on."""
    digest = hashlib.sha256(salt.encode())
    for name in sorted(environ):
        if name not in OF_TERMINALS and not name.startswith(OF_TERMINAL_PROGRAMS):
            digest.update(repr((name, environ[name])).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def stamps(files: Iterable[str]) -> dict[str, Stamp]:
    """What distinguishes one state of the files from another; None: it is not there, or cannot be read."""
    found: dict[str, Stamp] = {}
    for path in files:
        try:
            state = os.stat(path)
            found[path] = [state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino]
        except (OSError, ValueError):
            found[path] = None
    return found


def is_for(hello: Mapping[str, Any], cwd: str, version: str) -> bool:
    """Whether a gateway that introduces itself so is one for this caller; its files are compared apart."""
    return (
        hello["version"] == version
        and hello["cwd"] == cwd
        and hello["environment"] == environment_digest(hello["salt"])
    )


def is_own_peer(peer: Any) -> bool:
    """Whether the process at the other end of a socket is this user's. Where the system cannot tell, the mode
    of the socket and of its folder decide."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    import struct

    from dragoman.private_files import is_own_user

    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return is_own_user(user)
