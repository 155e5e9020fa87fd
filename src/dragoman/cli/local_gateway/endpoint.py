"""The socket of a local gateway, and the conditions under which a command may use it.

There is one gateway for each working directory. A command uses it only if both have the same environment and
the same configuration files, because rules, approvals and servers depend on them. This module imports nothing
that takes long to load.
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from dragoman import paths

FOLDER: Final = "sockets"
PATH_LIMIT_BYTES: Final = 100
"""The most bytes that the path of a socket may have on every system."""
TERMINAL_VARIABLES: Final = frozenset(
    {"_", "COLORTERM", "COLUMNS", "DRAGOMAN_PLAIN", "LINES", "NO_COLOR", "OLDPWD", "PS1", "PWD", "SHLVL",
     "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "STY", "TERM", "TMUX", "TMUX_PANE", "TTY", "WINDOWID",
     "XDG_SESSION_ID"}
)  # fmt: skip
"""Variables that differ from one terminal to the next, and that no server or rule depends on."""
TERMINAL_PREFIXES: Final = ("GNOME_TERMINAL_", "ITERM_", "KITTY_", "KONSOLE_", "TERM_", "VTE_", "WT_")

Stamp = list[int] | None
"""Values that differ after a change of a file; None for a file that cannot be read."""


def has_sockets() -> bool:
    return hasattr(socket, "AF_UNIX")


def socket_path(cwd: str) -> Path:
    digest = hashlib.sha256(os.fsencode(cwd)).hexdigest()[:16]
    return paths.state_dir() / FOLDER / f"{digest}.sock"


def environment_digest(salt: str, environ: Mapping[str, str] = os.environ) -> str:
    """A digest of all variables that a server, a rule or a hook may depend on."""
    digest = hashlib.sha256(salt.encode())
    for name in sorted(environ):
        if name not in TERMINAL_VARIABLES and not name.startswith(TERMINAL_PREFIXES):
            digest.update(repr((name, environ[name])).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def stamps(files: Iterable[str]) -> dict[str, Stamp]:
    """The stamp of each file."""
    found: dict[str, Stamp] = {}
    for path in files:
        try:
            state = os.stat(path)
            found[path] = [state.st_mtime_ns, state.st_ctime_ns, state.st_size, state.st_ino]
        except (OSError, ValueError):
            found[path] = None
    return found


def fits_command(hello: Mapping[str, Any], cwd: str, version: str) -> bool:
    """Whether the gateway with this greeting fits this command. Files are compared separately."""
    return (
        hello["version"] == version
        and hello["cwd"] == cwd
        and hello["environment"] == environment_digest(hello["salt"])
    )


def is_own_peer(peer: Any) -> bool:
    """Whether the peer of a socket is a process of this user. Where the system does not report that, the
    modes of the socket and of its folder protect it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return True
    import struct

    from dragoman.private_files import is_own_user

    _, user, _ = struct.unpack("3i", peer.getsockopt(socket.SOL_SOCKET, option, struct.calcsize("3i")))
    return is_own_user(user)
