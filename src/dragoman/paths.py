"""The folders in which Dragoman stores its files.

Defines the folders and the two variables that move them. Only their owner may read them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import posixpath
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dragoman.errors import ConfigError

MANAGED_FILE: Final = "managed-mcp.json"

NOWHERE: Final = Path("/nonexistent/.dragoman")


def config_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The person's folder: settings, plugins and state.

    `ConfigError` if a variable moves it to a relative path: a repository's settings would be used as the
    person's.
    """
    try:
        moved = environ.get("DRAGOMAN_CONFIG_DIR")
        folder = Path(moved).expanduser() if moved else Path.home() / ".dragoman"
    except RuntimeError:
        # A user without a home directory, as in some containers: nothing is found and nothing is stored.
        return NOWHERE
    return _absolute(folder, "DRAGOMAN_CONFIG_DIR" if moved else "HOME")


def state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The folder for Dragoman's own state. Losing it loses no decision of the person."""
    return config_dir(environ) / "state"


def links_in_config() -> dict[str, Path]:
    """The links in the person's folder, and in its folders of agents and plugins, with their real paths:
    managers of dotfiles make links of such files. By place: `settings.json`, `plugins/mine`."""
    own = config_dir()
    found: dict[str, Path] = {}
    for name in ("", "agents", "plugins"):
        with contextlib.suppress(OSError):
            places = [Path(each.path) for each in os.scandir(own / name) if each.is_symlink()]
            found |= {str(each.relative_to(own)): Path(os.path.realpath(each)) for each in places}
    return found


def server_folder(name: str) -> Path:
    """The working directory of a server that belongs to no project. Each server has its own, so that none can
    place programs or modules there for another."""
    return config_dir() / "servers" / file_name(name)


def file_name(name: str) -> str:
    """A file name for this server: unique for each server, and valid on every system."""
    readable = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{readable}-{digest}"


def is_server_folder(folder: Path) -> bool:
    return folder.parent == config_dir() / "servers"


def logs_dir() -> Path:
    """The folder of the audit log and of the logs of servers."""
    return config_dir() / "logs"


def managed_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The administrator's folder. If it has a managed file, no variable can move it."""
    is_mac = sys.platform == "darwin"
    usual = Path("/Library/Application Support/Dragoman" if is_mac else "/etc/dragoman")
    moved = environ.get("DRAGOMAN_MANAGED_DIR")
    if not moved or _may_be_there(usual / MANAGED_FILE):
        return usual
    return _absolute(Path(moved), "DRAGOMAN_MANAGED_DIR")


def _absolute(folder: Path, variable: str) -> Path:
    if folder.is_absolute():
        return folder
    raise ConfigError(
        f"{variable} is a relative path, which would mean another folder in every working directory",
        hint="Set it to an absolute path.",
    )


def _may_be_there(path: Path) -> bool:
    """Whether the path may exist: true also if access to it is denied."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def make_private(folder: Path) -> None:
    """Creates the folder and its missing parents, each for its owner alone."""
    for missing in reversed([each for each in (folder, *folder.parents) if not each.exists()]):
        missing.mkdir(mode=0o700, exist_ok=True)


def normal_path(path: str) -> str:
    """The normalized path: `/bin//x/../rm` is `/bin/rm`, and `./rm` is `rm`. POSIX allows two leading slashes
    a special meaning; all supported systems read them as one."""
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path
