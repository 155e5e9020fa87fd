"""T142: servers start and commands work with damaged files in Dragoman's state folder."""

import json
import os
from pathlib import Path

import pytest

from dragoman import Host, paths
from dragoman.calls import audit
from dragoman.clock import SystemClock
from dragoman.connections.eras import EraMemory
from dragoman.servers import stored_tools
from dragoman.transports import orphans
from tests.servers import stdio_server

CONTENTS = {
    "nested without end": b'{"a":{"era":"modern","at":1,"x":' + b"[" * 100_000,
    "not UTF-8": b'{"a":{"era":"\xff","at":1}}',
    "of other types": b'{"a":5}',
    "nothing": b"",
}


def place(path: Path, what: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a device without end":
        path.symlink_to("/dev/zero")
    else:
        path.write_bytes(CONTENTS[what])


@pytest.mark.parametrize("what", [*CONTENTS, "a pipe", "a device without end"])
async def test_t142_a_server_starts_with_a_damaged_era_memory(home: Path, what: str):
    place(paths.state_dir() / "eras.json", what)
    async with Host({"calm": stdio_server("well_behaved.py")}, permission_mode="bypassPermissions") as host:
        assert (await host.call("mcp__calm__echo", {"message": "here"})).text == "here"


@pytest.mark.parametrize("what", [*CONTENTS, "a pipe", "a device without end"])
def test_t142_damaged_state_files_are_ignored(home: Path, what: str):
    place(paths.state_dir() / "eras.json", what)
    place(paths.state_dir() / "tools" / "f.json", what)
    assert EraMemory(SystemClock()).recall("a") is None
    assert stored_tools.load("f") is None


def test_t142_a_line_of_the_audit_log_that_is_not_utf8_is_skipped(home: Path):
    paths.logs_dir().mkdir(parents=True)
    lines = [b'{"tool":"a\xff"}', b'{"tool":"b"}', b"[" * 100_000, b'{"tool":"c"}']
    (paths.logs_dir() / audit.FILE).write_bytes(b"\n".join(lines) + b"\n")
    assert list(audit.read(paths.logs_dir())) == [{"tool": "b"}, {"tool": "c"}]


@pytest.mark.parametrize("what", ["not UTF-8", "nested without end", "a pipe"])
def test_t142_damaged_names_for_completion_are_ignored(home: Path, what: str):
    from dragoman.cli.commands import completion

    place(completion._names_file(), what)
    assert completion._remembered() == {}


def test_t142_a_named_pipe_in_the_pid_registry_does_not_block_the_sweep(home: Path):
    orphans.pid_file_dir().mkdir(parents=True)
    os.mkfifo(orphans.pid_file_dir() / "999999999-1")
    (orphans.pid_file_dir() / "999999999-2").write_text(json.dumps("odd"))
    assert orphans.sweep() == []
    assert [each.name for each in orphans.pid_file_dir().iterdir()] == ["999999999-1"]
