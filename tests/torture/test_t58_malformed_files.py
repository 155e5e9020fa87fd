"""T58: Malformed files in every scope are reported with their place, and do not stop the host."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.load import Configuration
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("CFG-10")

PLACES = {
    "user": ".dragoman/settings.json",
    "project": "work/.mcp.json",
    "outer project": ".mcp.json",
    "local": "work/.dragoman/settings.local.json",
    "plugin": ".dragoman/plugins/bad/.mcp.json",
    "managed": "managed/managed-mcp.json",
    "approvals": ".dragoman/approvals.json",
}
READ_AS_SERVERS = ["user", "project", "outer project", "local", "plugin"]
CAN_DENY = ["user", "local"]
"""While one of these cannot be read, nothing is started: see T100."""
LEAD_OUTSIDE = ["a device without end", "a terminal"]
"""A project's file that is a symlink to another folder is ignored: see T87."""

WHOLE = json.dumps({"mcpServers": {"spoiled": {"command": "true"}}}, indent=2).encode()


def text(data: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(data)


def huge(path: Path) -> None:
    with open(path, "wb") as file:
        file.write(WHOLE)
        file.truncate(100 * 1024 * 1024)


def huge_and_valid(path: Path) -> None:
    path.write_bytes(b'{"x": "' + b"x" * (20 * 1024 * 1024) + b'"}')


WITH_LINE: dict[str, Callable[[Path], object]] = {
    "empty": text(b""),
    "blank": text(b"\n\n \n"),
    "byte order mark": text(b"\xef\xbb\xbf" + WHOLE),
    "line comment": text(b"// mine\n" + WHOLE),
    "block comment": text(WHOLE.replace(b'"spoiled"', b'/* x */ "spoiled"')),
    "trailing comma": text(WHOLE.replace(b'"true"', b'"true",')),
    "single quotes": text(WHOLE.replace(b'"', b"'")),
    "a key without quotes": text(WHOLE.replace(b'"command"', b"command")),
    "a server twice": text(b'{"mcpServers": {"a": {"command": "x"},\n"a": {"command": "y"}}}'),
    "a key twice": text(b'{"mcpServers": {},\n"mcpServers": {}}'),
    "cut off": text(WHOLE[:-5]),
    "written twice": text(WHOLE + WHOLE),
    "invalid UTF-8": text(WHOLE.replace(b"true", b"tr\xffue")),
    "UTF-16": text(WHOLE.decode().encode("utf-16")),
    "NULs": text(WHOLE + bytes(9)),
    "a raw control character": text(WHOLE.replace(b"true", b"tr\x01ue")),
    "NaN": text(WHOLE.replace(b'"true"', b"NaN")),
    "deep": text(b'{"mcpServers":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001),
    "deep lists": text(b'{"mcpServers": {"a": {"args": ' + b"[" * 100_000),
    "a list": text(b"[" + WHOLE + b"]"),
    "a text": text(b'"mcpServers"'),
    "a number": text(b"5"),
    "null": text(b"null"),
    "a long number": text(WHOLE.replace(b'"true"', b"1" * 200_000)),
}
WITHOUT_LINE: dict[str, Callable[[Path], object]] = {
    "100 MB of nothing": huge,
    "20 MB": huge_and_valid,
    "a folder": Path.mkdir,
    "a pipe": lambda path: os.mkfifo(path),
    "a link to itself": lambda path: path.symlink_to(path),
    "a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a terminal": lambda path: path.symlink_to("/dev/tty"),
}
MALFORMED = {**WITH_LINE, **WITHOUT_LINE}


class SetupWithOneMalformedFile:
    """A valid server in every scope except the malformed one."""

    def __init__(self, home: Path, spoiled: str) -> None:
        self.home = home
        self.file = home / PLACES[spoiled]
        self.good: set[str] = set()
        for place in READ_AS_SERVERS:
            if place != spoiled:
                name = place.replace(" ", "-")
                file = write(home / PLACES[place], servers(**{name: stdio_server("well_behaved.py", name)}))
                if "project" in place or place == "local":
                    projects.approve(file, name)
                self.good.add(name)
        write(
            home / ".dragoman" / "plugins" / "fine" / ".mcp.json",
            servers(fine=stdio_server("well_behaved.py", "fine")),
        )
        self.good.add("fine")
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.unlink(missing_ok=True)

    def fingerprint(self) -> tuple[Any, ...]:
        about = self.file.lstat()
        content = self.file.read_bytes() if self.file.is_file() and about.st_size < 1_000_000 else b""
        return about.st_ino, about.st_mtime_ns, about.st_mode, about.st_size, content

    def look(self) -> tuple[Configuration, str]:
        """The result, and everything that is reported about the malformed file."""
        before, started = self.fingerprint(), time.monotonic()
        seen = projects.seen(self.home / "work")
        assert time.monotonic() - started < 5
        assert self.fingerprint() == before
        return seen, "\n".join(problem for problem in seen.problems if str(self.file) in problem)


@pytest.mark.parametrize("place", READ_AS_SERVERS)
@pytest.mark.parametrize("what", MALFORMED)
def test_t58_a_malformed_file_affects_only_itself_and_is_named_in_the_error(
    home: Path, place: str, what: str
):
    desk = SetupWithOneMalformedFile(home, place)
    MALFORMED[what](desk.file)

    seen, told = desk.look()

    is_closed = place == "user" or (place == "local" and what not in LEAD_OUTSIDE)
    ready = {name for name, server in seen.servers.items() if server.eligibility == "ready"}
    assert ready == (set() if is_closed else desk.good)
    assert desk.good <= seen.servers.keys()
    assert told
    assert (f"{desk.file}, line " in told) == (what in WITH_LINE)
    assert len(told) < 1000


@pytest.mark.parametrize("what", MALFORMED)
def test_t58_a_malformed_administrators_file_is_named_too(home: Path, what: str):
    desk = SetupWithOneMalformedFile(home, "managed")
    MALFORMED[what](desk.file)
    seen, told = desk.look()
    assert (f"{desk.file}, line " in told) == (what in WITH_LINE)
    assert "ready" not in {server.eligibility for server in seen.servers.values()}


@pytest.mark.parametrize("what", MALFORMED)
def test_t58_approvals_that_cannot_be_read_count_as_missing(home: Path, what: str):
    desk = SetupWithOneMalformedFile(home, "approvals")
    MALFORMED[what](desk.file)
    seen, told = desk.look()
    waiting = {name for name, server in seen.servers.items() if server.eligibility == "pending"}
    assert waiting == {"project", "outer-project", "local"}
    assert told


@pytest.mark.parametrize("what", MALFORMED)
def test_t58_a_file_named_on_the_command_line_is_an_error(home: Path, what: str):
    file = home / "given.json"
    MALFORMED[what](file)
    done = run("tools", "--mcp-config", file)
    if what in ("line comment", "block comment", "trailing comma", "byte order mark"):
        assert "spoiled" in done.stdout + done.stderr, "such a file may have them: other hosts' files do"
        return
    assert done.returncode == 3
    assert str(file) in done.stderr
    assert ("line " in done.stderr) == (what in WITH_LINE)
    assert "Traceback" not in done.stderr


PIPES = ["a pipe", "a folder", "100 MB of nothing", "cut off", "trailing comma"]


@pytest.mark.parametrize("place", READ_AS_SERVERS)
@pytest.mark.parametrize("what", PIPES)
async def test_t58_a_host_works_with_the_servers_of_the_other_files(home: Path, place: str, what: str):
    desk = SetupWithOneMalformedFile(home, place)
    MALFORMED[what](desk.file)
    closed = place in CAN_DENY
    async with Host.configured(permission_mode="bypassPermissions", ignore_broken_settings=closed) as host:
        await host.ready(timeout=30)
        assert {name for name, view in host.servers.items() if view.status == "connected"} == desk.good
        for name in desk.good:
            outcome = await host.call(f"mcp__{name}__echo", {"message": name})
            assert outcome.text == name


@pytest.mark.parametrize("what", ["a pipe", "cut off", "invalid UTF-8"])
@pytest.mark.parametrize("place", READ_AS_SERVERS)
def test_t58_the_commands_report_it_on_stderr_and_continue(home: Path, place: str, what: str):
    desk = SetupWithOneMalformedFile(home, place)
    MALFORMED[what](desk.file)
    for words in (["tools"], ["mcp", "list"], ["config", "explain"], ["config", "plan"]):
        if place in CAN_DENY and words == ["tools"]:
            words = ["tools", "--ignore-broken-settings"]
        done = run(*words)
        assert str(desk.file) in done.stderr, words
        assert "Traceback" not in done.stderr, words
        for name in desk.good:
            assert name in done.stdout, words
    document = json.loads(run("mcp", "list", "--json").stdout)
    assert any(str(desk.file) in problem for problem in document["problems"])


WRITERS = {
    "user": [["mcp", "add", "-s", "user", "new", "true"], ["mcp", "disable", "fine"]],
    "project": [["mcp", "add", "-s", "project", "new", "true"]],
    "local": [["mcp", "add", "-s", "local", "new", "true"], ["mcp", "disable", "project"]],
}


@pytest.mark.parametrize("place", WRITERS)
@pytest.mark.parametrize(
    "what", ["a pipe", "a folder", "a link to itself", "20 MB", "a list", "a key twice", "cut off", "UTF-16"]
)
def test_t58_no_command_writes_into_a_file_it_cannot_read(home: Path, place: str, what: str):
    desk = SetupWithOneMalformedFile(home, place)
    MALFORMED[what](desk.file)
    before = desk.fingerprint()
    for words in WRITERS[place]:
        done = run(*words)
        assert done.returncode == 3, words
        assert str(desk.file) in done.stderr, words
        assert desk.fingerprint() == before, words


# --- valid JSON with an invalid structure ---

INVALID_STRUCTURES: dict[str, tuple[Any, str]] = {
    "the wrong name": ({"servers": {"spoiled": {"command": "true"}}}, "servers"),
    "another wrong name": ({"mcpservers": {}}, "mcpservers"),
    "a list": ({"mcpServers": []}, "mcpServers"),
    "null": ({"mcpServers": None}, "mcpServers"),
    "a text": ({"mcpServers": "x"}, "mcpServers"),
}


@pytest.mark.parametrize("place", READ_AS_SERVERS)
@pytest.mark.parametrize("what", INVALID_STRUCTURES)
def test_t58_an_invalid_block_is_reported_with_its_line(home: Path, place: str, what: str):
    desk = SetupWithOneMalformedFile(home, place)
    document, word = INVALID_STRUCTURES[what]
    write(desk.file, document)
    seen, told = desk.look()
    assert set(seen.servers) == desk.good
    assert f"{desk.file}, line 2" in told
    assert word in told
    assert "mcpServers" in told


WRONG_ENTRIES: dict[str, Any] = {
    "null": None,
    "text": "npx box",
    "number": 5,
    "list": ["npx", "box"],
    "nothing": {},
    "command a list": {"command": ["npx", "box"]},
    "command null": {"command": None},
    "command empty": {"command": ""},
    "args a text": {"command": "x", "args": "-y box"},
    "args with a number": {"command": "x", "args": [1]},
    "args with null": {"command": "x", "args": [None]},
    "env a list": {"command": "x", "env": ["A=B"]},
    "env with null": {"command": "x", "env": {"A": None}},
    "env with a list": {"command": "x", "env": {"A": ["B"]}},
    "headers a text": {"url": "https://box.example.com/", "headers": "A: B"},
    "url a number": {"url": 5},
    "url nonsense": {"url": "box"},
    "unknown type": {"type": "telepathy", "url": "https://box.example.com/"},
    "timeout a text": {"command": "x", "timeout": "soon"},
    "cwd a number": {"command": "x", "cwd": 5},
    "deep": {"command": "x", "more": json.loads("[" * 80 + "]" * 80)},
}


@pytest.mark.parametrize("place", ["user", "plugin"])
@pytest.mark.parametrize("what", [what for what in WRONG_ENTRIES if what != "deep"])
def test_t58_an_invalid_entry_affects_only_itself(home: Path, place: str, what: str):
    desk = SetupWithOneMalformedFile(home, place)
    write(desk.file, servers(before={"command": "x"}, wrong=WRONG_ENTRIES[what], after={"command": "y"}))
    seen, _ = desk.look()
    assert seen.servers["wrong"].eligibility == "broken"
    assert {seen.servers[name].eligibility for name in ("before", "after", *desk.good)} == {"ready"}
    reason = str(seen.servers["wrong"].reason)
    assert f"{desk.file}, line 6" in reason
    assert "wrong" in reason


@pytest.mark.slow
@pytest.mark.parametrize("what", ["null", "text", "number", "list", "nothing", "args a text", "deep"])
def test_t58_an_invalid_entry_of_a_project_can_be_shown_by_every_command(home: Path, what: str):
    desk = SetupWithOneMalformedFile(home, "project")
    write(desk.file, servers(wrong=WRONG_ENTRIES[what], right=stdio_server("well_behaved.py", "right")))
    for words in (["mcp", "list"], ["mcp", "list", "--json"], ["mcp", "get", "wrong"], ["mcp", "approve"]):
        done = run(*words)
        assert "Traceback" not in done.stderr, words
        assert "wrong" in done.stdout + done.stderr
    assert run("mcp", "approve", "right", "--yes").returncode == 0
    assert projects.seen().servers["right"].eligibility == "ready"
    done = run("mcp", "approve", "wrong", "--yes")
    assert "Traceback" not in done.stderr
    assert projects.seen().servers["wrong"].eligibility in ("pending", "broken", "ready")


@pytest.mark.parametrize("key", ["disabledMcpServers", "disabledMcpjsonServers", "env", "permissions"])
@pytest.mark.parametrize("value", [5, "x", [5], {"a": []}, None], ids=repr)
@pytest.mark.parametrize("place", ["user", "local"])
def test_t58_an_invalid_value_affects_only_its_key(home: Path, place: str, key: str, value: Any):
    desk = SetupWithOneMalformedFile(home, place)
    write(desk.file, {**servers(kept={"command": "x"}), key: value})
    seen, told = desk.look()
    assert "kept" in seen.servers
    assert desk.good <= set(seen.servers)
    assert key in told or (key == "permissions" and value == {"a": []})
