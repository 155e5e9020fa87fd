"""What only POSIX systems have is used in one module for each concern."""

import ast
from pathlib import Path

import pytest

from tests.integration.as_on_windows import MODULES, OF_OS, OF_SIGNAL

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"

CONCERNS = {
    "private_files.py": "owners, modes and flags of files",
    "processes.py": "process groups and signals",
    "transports/family.py": "the processes of one server",
    "transports/process.py": "starting a server",
    "transports/orphans.py": "ending servers after the host",
    "transports/reaper.py": "ending servers",
    "content/querying.py": "limits of a child process",
    "cli/terminal_input.py": "the terminal",
    "cli/common.py": "signals to the command",
}


def posix_only(text: str) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                found += [alias.name for alias in names if alias.name in MODULES]
            case ast.ImportFrom(module=module) if module in MODULES:
                found.append(module)
            case ast.Attribute(value=ast.Name("os"), attr=name) if name in OF_OS or name == "kill":
                found.append(f"os.{name}")
            case ast.Attribute(value=ast.Name("signal"), attr=name) if name in OF_SIGNAL:
                found.append(f"signal.{name}")
            case ast.Attribute(attr="add_signal_handler"):
                found.append("add_signal_handler")
            case _:
                pass
    return found


def test_posix_modules_are_used_only_in_the_listed_modules():
    used = {
        str(path.relative_to(SOURCE)): found
        for path in SOURCE.rglob("*.py")
        if (found := posix_only(path.read_text()))
    }
    assert {name: found for name, found in used.items() if name not in CONCERNS} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import fcntl", ["fcntl"]),
        ("from termios import ECHO", ["termios"]),
        ("os.kill(1, 0)", ["os.kill"]),
        ("os.O_RDONLY | os.O_NOFOLLOW", ["os.O_NOFOLLOW"]),
        ("signal.SIGTERM, signal.SIGKILL", ["signal.SIGKILL"]),
        ("loop.add_signal_handler(1, f)", ["add_signal_handler"]),
        ("os.getpid()", []),
    ],
)
def test_a_use_is_found(text: str, found: list[str]):
    assert posix_only(text) == found
