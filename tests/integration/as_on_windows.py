"""A program that takes the URL of a server and shows what works on a system without POSIX-only modules.

The modules, functions and constants that Windows lacks are removed before Dragoman is imported; what the
standard library and other packages need of them here is loaded before that. Prints a JSON object.
"""

import asyncio
import contextlib
import importlib
import io
import json
import os
import pkgutil
import signal
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import aiohttp  # noqa: F401
import filelock
import platformdirs.unix  # noqa: F401
import rich.console  # noqa: F401
import textual.app
import textual.widgets  # noqa: F401

MODULES = ("fcntl", "grp", "posix", "pty", "pwd", "readline", "resource", "syslog", "termios", "tty")
OF_OS = (
    *("fchmod", "fchown", "chown", "lchown", "geteuid", "getuid", "getegid", "getgid", "getgroups", "setuid"),
    *("fork", "forkpty", "killpg", "getpgid", "getpgrp", "setpgid", "getsid", "setsid", "register_at_fork"),
    *("pread", "pwrite", "mkfifo", "mknod", "fpathconf", "pathconf", "sysconf", "uname", "nice", "wait"),
    *("waitid", "wait3", "wait4", "P_PID", "P_PIDFD", "CLD_EXITED", "WEXITED", "WNOHANG", "WNOWAIT"),
    *("pidfd_open", "set_blocking", "get_blocking", "tcgetpgrp", "ttyname", "openpty", "posix_spawn"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_DIRECTORY", "O_SYNC"),
)
OF_SIGNAL = (
    *("SIGKILL", "SIGHUP", "SIGALRM", "SIGCHLD", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGWINCH"),
    *("alarm", "setitimer", "pidfd_send_signal", "pthread_kill", "pthread_sigmask", "sigwait"),
)


def without_relative(call: Any) -> Any:
    """A function of `os` that refuses `dir_fd`, and to open a folder."""

    def replaced(path: Any, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
        if dir_fd is not None:
            raise NotImplementedError("dir_fd unavailable on this platform")
        if call.__name__ == "open" and os.path.isdir(path):
            raise PermissionError(13, "Permission denied")
        return call(path, *args, **options)

    return replaced


def refuse(*args: Any, **options: Any) -> Any:
    raise NotImplementedError


def must_not_be_called(*args: Any, **options: Any) -> Any:
    raise AssertionError("this ends or interrupts a process on Windows, or starts one that is not ended")


class Lock(contextlib.AbstractContextManager[Any]):
    """Replaces a file lock: there is no other process."""

    def __init__(self, *args: Any, **options: Any) -> None:
        pass

    def acquire(self, *args: Any, **options: Any) -> None:
        pass

    def release(self, *args: Any, **options: Any) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        pass


def take_away() -> None:
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for name in OF_OS:
        if hasattr(os, name):
            delattr(os, name)
    for name in OF_SIGNAL:
        if hasattr(signal, name):
            delattr(signal, name)
    for name in ("open", "unlink", "stat"):
        setattr(os, name, without_relative(getattr(os, name)))
    os.supports_dir_fd.clear()
    filelock.FileLock = Lock  # type: ignore[misc,assignment]  # the one for Windows cannot be used here
    os.kill = must_not_be_called
    subprocess.Popen.__init__ = must_not_be_called  # type: ignore[method-assign]
    asyncio.SelectorEventLoop.add_signal_handler = refuse  # type: ignore[method-assign]
    asyncio.SelectorEventLoop.connect_read_pipe = refuse  # type: ignore[method-assign]


def failed_imports() -> dict[str, str]:
    import dragoman

    failed: dict[str, str] = {}
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if module.name.endswith("__main__"):
            continue
        try:
            importlib.import_module(module.name)
        except BaseException:
            failed[module.name] = traceback.format_exc()
    return failed


async def calls(url: str) -> dict[str, Any]:
    from dragoman import ConnectError, Host
    from dragoman.config.model import parse_entry

    entries = {"box": {"type": "http", "url": url}, "program": {"command": "cat"}}
    helped = {"url": url, "headersHelper": "echo"}
    parse_entry("box", entries["box"])
    async with Host(
        {**entries, "helped": helped},
        permission_mode="bypassPermissions",
        settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 0},
    ) as host:
        await host.ready(timeout=20)
        errors = {name: host.servers[name].error for name in ("program", "helped")}
        long = await host.call("mcp__box__echo", {"text": "x" * 1_000_000})
        files = [file for file in Path.home().rglob("*") if file.is_file()]
        return {
            "echo": (await host.call("mcp__box__echo", {"text": "through"})).text,
            "saved": any(file.stat().st_size >= 1_000_000 for file in files),
            "long": len(long.text) < 1_000_000,
            "errors": {
                name: [error.code, error.cause] if isinstance(error, ConnectError) else repr(error)
                for name, error in errors.items()
            },
        }


def command(*words: str) -> list[Any]:
    """The exit code, stdout and stderr of the command line, in this process."""
    from dragoman.cli.main import main

    sys.argv = ["dragoman", *words]
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
    code: Any = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code
    out.flush()
    return [code, out.buffer.getvalue().decode(), err.getvalue()]  # type: ignore[attr-defined]


if __name__ == "__main__":
    take_away()
    found: dict[str, Any] = {"imports": failed_imports()}
    if not found["imports"]:
        found["host"] = asyncio.run(calls(sys.argv[1]))
        url = sys.argv[1]
        found["help"] = command("--help")
        found["add"] = command("mcp", "add", "-s", "user", "box", url)
        found["list"] = command("mcp", "list", "--json")
        found["tools"] = command("tools", "box")
    json.dump(found, sys.stdout)
