"""Opens pages in the person's browser.

Opens only URLs that `urls.parse_page_url` accepts, never through a shell, and without this process's input
and output. Where no browser can be opened (a terminal over ssh, no display) the caller shows the URL.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

from dragoman.errors import ConfigError
from dragoman.programs import search_path
from dragoman.urls import parse_page_url


def opener(environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The program that opens a URL here; None if there is none."""
    if chosen := environ.get("BROWSER"):
        found = shutil.which(chosen, path=search_path(environ))
        return [found] if found else None
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return None  # the browser would open on the other machine
    if sys.platform == "darwin":
        return ["/usr/bin/open"]
    if sys.platform == "win32":
        return ["rundll32", "url.dll,FileProtocolHandler"]
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY") or environ.get("WSL_DISTRO_NAME")):
        return None
    folders = search_path(environ)
    found = shutil.which("xdg-open", path=folders) or shutil.which("wslview", path=folders)
    return [found] if found else None


def open_page(url: str) -> bool:
    """Opens the page; returns whether a browser was started. Raises `ConfigError` for a URL that may not be
    opened."""
    if parse_page_url(url) is None:
        raise ConfigError("the URL is not opened: only https, or http on this machine, is allowed")
    program = opener()
    if program is None:
        return False
    try:
        subprocess.Popen(
            [*program, url],
            # xdg-open is a script that looks up further programs; it must not find them in a repository.
            env={**os.environ, "PATH": search_path()},
            cwd="/" if os.name == "posix" else None,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    return True
