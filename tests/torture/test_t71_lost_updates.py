"""T71: Eight processes write one file at the same time.

No update is lost, and unknown content is kept. The writers are forked by a separate process (this
file, run as a program)."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config import writer
from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state

PROCESSES, WRITES = 8, 25

# Content of a newer version that the writers do not know.
BEFORE = '{\n\t"zeta": [1,   2],\n\t"mcpServers": {"first": {"later": {"x": null}}'
AFTER = '},\n\t"alpha": 1e5\n}\n'


def add_server(path: Path, name: str) -> None:
    edit(path, lambda text: set_value(text, ["mcpServers", name], {"command": name}), private=True)


def add_state(path: Path, name: str) -> None:
    def change(state: dict[str, Any]) -> dict[str, Any]:
        return {**state, "mcpServers": {**state["mcpServers"], name: {"command": name}}}

    assert edit_state(path, change) is None


ADDERS: dict[str, Callable[[Path, str], None]] = {"settings": add_server, "state": add_state}


# --- the program ---


def write_many(add: Callable[[Path, str], None], path: Path, process: int) -> None:
    for number in range(WRITES):
        add(path, f"p{process}-{number}")


def main(add: Callable[[Path, str], None], path: Path) -> None:
    """Forks the writers, starts them all at the same time, and waits for them."""
    starting_line, start = os.pipe()
    pids: list[int] = []
    for process in range(PROCESSES):
        pid = os.fork()
        if pid == 0:
            os.close(start)
            os.read(starting_line, 1)  # ends when no process has the other end open
            write_many(add, path, process)
            os._exit(0)
        pids.append(pid)
    os.close(start)
    failed = [pid for pid in pids if os.waitpid(pid, 0)[1] != 0]
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    if sys.argv[3] == "unlocked":
        writer._locked = lambda *_: contextlib.nullcontext()
    main(ADDERS[sys.argv[1]], Path(sys.argv[2]))


# --- the tests ---


def after_all_writers(kind: str, path: Path, locks: str) -> dict[str, Any]:
    path.write_text(BEFORE + AFTER)
    command = [sys.executable, __file__, kind, str(path), locks]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 0 or locks == "unlocked", done.stderr
    return json.loads(path.read_text())


@pytest.mark.slow
@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("kind", ["settings", "state"])
def test_t71_every_update_of_every_process_is_in_the_file(home: Path, kind: str):
    path = home / "shared.json"

    content = after_all_writers(kind, path, "locked")

    expected = {f"p{process}-{number}" for process in range(PROCESSES) for number in range(WRITES)}
    assert content["mcpServers"].keys() == expected | {"first"}
    assert list(content) == ["zeta", "mcpServers", "alpha"]
    assert content["mcpServers"]["first"] == {"later": {"x": None}}
    assert sorted(os.listdir(home)) == [".dragoman", "shared.json", "work"]
    if kind == "settings":
        assert path.read_text().startswith(BEFORE + ', "p')
        assert path.read_text().endswith(AFTER)


@pytest.mark.slow
def test_t71_without_the_lock_updates_are_lost(home: Path):
    content = after_all_writers("settings", home / "shared.json", "unlocked")
    assert len(content["mcpServers"]) < PROCESSES * WRITES + 1
