"""The exit codes: what each one means, told by an example. Scripts depend on them."""

import os
import re
from pathlib import Path

import pytest

from dragoman.cli import exit_codes
from dragoman.errors import PermissionRefused
from tests.e2e import command as installed
from tests.e2e.command import ROOT, config, entry
from tests.e2e.forked import run
from tests.integration.desk import Desk
from tests.servers import stdio_server
from tests.torture.projects import COMMANDS, invocations

DEMO = ("--mcp-config", "demo")
GONE = ("--mcp-config", config(gone={"command": "no-such-program"}))


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(set(COMMANDS) - {"demo"}))
def test_the_installed_command_imports_its_modules(command: str, home: Path) -> None:
    """Most tests run commands in a process that has imported everything already."""
    Desk(home).user({"files": entry("serves")})
    _, words, *_ = invocations(command, ["files"])
    done = installed.run(*words, env={**os.environ, "DRAGOMAN_STOP_WAIT_MS": "0"})
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (exit_codes.OK, ("call", "mcp__demo__add", "a=1", "b=2", *DEMO)),
        (exit_codes.OK, ("call", "mcp__demo__add", "a=1", "b=2", *DEMO, *GONE)),
        (exit_codes.OK, ("mcp", "list", "--check", *DEMO)),
        (exit_codes.FAILED, ("call", "mcp__demo__fail", *DEMO)),
        (exit_codes.FAILED, ("call", "mcp__e2e__error", "--mcp-config", config(e2e=entry("serves")))),
        (exit_codes.USAGE, ()),
        (exit_codes.USAGE, ("frobnicate",)),
        (exit_codes.USAGE, ("tools", "--frobnicate")),
        (exit_codes.USAGE, ("call",)),
        (exit_codes.NOT_FOUND, ("tools", *DEMO, "--server", "other")),
        (exit_codes.NOT_FOUND, ("resources", *DEMO, "--server", "other")),
        (exit_codes.NOT_FOUND, ("prompts", "other", *DEMO)),
        (exit_codes.NOT_FOUND, ("tools", "search", "x", *DEMO, "--server", "other")),
        (exit_codes.NOT_FOUND, ("tools", "lock", "--check", *DEMO, "--server", "other")),
        (exit_codes.NOT_FOUND, ("read", "other", "x://y", *DEMO)),
        (exit_codes.NOT_FOUND, ("mcp", "get", "other", *DEMO)),
        (exit_codes.NOT_FOUND, ("mcp", "remove", "other")),
        (exit_codes.NOT_FOUND, ("mcp", "enable", "other")),
        (exit_codes.NOT_FOUND, ("mcp", "disable", "other")),
        (exit_codes.NOT_FOUND, ("mcp", "approve", "other", "--yes")),
        (exit_codes.NOT_FOUND, ("mcp", "export", "cursor", "out.json", "--name", "other")),
        (exit_codes.NOT_FOUND, ("config", "explain", "other")),
        (exit_codes.NOT_FOUND, ("permissions", "remove", "mcp__other")),
        (exit_codes.NOT_FOUND, ("prompt", "other", *DEMO)),
        (exit_codes.NOT_FOUND, ("call", "mcp__other__x", *DEMO)),
        (exit_codes.NOT_FOUND, ("call", "nothing", *DEMO, *GONE)),
        (exit_codes.NOT_FOUND, ("tools", "show", "nothing", *DEMO)),
        (exit_codes.NOT_FOUND, ("tools", "nothing", *DEMO)),
        (exit_codes.NOT_CONNECTED, ("mcp", "list", "--check", *GONE)),
        (exit_codes.NOT_CONNECTED, ("resources", *GONE)),
        (exit_codes.NOT_CONNECTED, ("prompts", *DEMO, *GONE)),
        (exit_codes.NOT_CONNECTED, ("read", "gone", "x://y", *GONE)),
        (exit_codes.NOT_CONNECTED, ("tools", "show", "mcp__gone__x", *GONE)),
        (exit_codes.NOT_CONNECTED, ("tools", "search", "nothing-like-it", *GONE)),
        (exit_codes.USAGE, ("mcp", "list", "--check", "--no-health")),
        (exit_codes.USAGE, ("call", "mcp__demo__add", "a", "1", *DEMO)),
        (exit_codes.USAGE, ("call", "mcp__demo__add", '{"a": 1', *DEMO)),
        (exit_codes.USAGE, ("call", "mcp__demo__add", "a=1", "b=two", *DEMO)),
        (exit_codes.USAGE, ("call", "mcp__demo__add", "a=1", "b=2", "--timeout", "-1", *DEMO)),
        (exit_codes.CONFIG, ("tools",)),
        (exit_codes.CONFIG, ("tools", "--mcp-config", "no-such-file.json")),
        (exit_codes.CONFIG, ("tools", "--mcp-config", "/")),
        (exit_codes.CONFIG, ("tools", "--mcp-config", "{broken")),
        (exit_codes.CONFIG, ("tools", "--mcp-config", '{"servers": {}}')),
        (exit_codes.CONFIG, ("tools", "--mcp-config", '{"mcpServers": {"x": {}}}')),
        (exit_codes.CONFIG, ("tools", "--mcp-config", '{"mcpServers": {"x": {"command": 5}}}')),
        (exit_codes.CONFIG, ("tools", "--mcp-config", config(x={"command": "x", "protocol": "1999-01-01"}))),
        (exit_codes.NOT_CONNECTED, ("tools", *DEMO, *GONE)),
        (exit_codes.NOT_CONNECTED, ("call", "mcp__gone__anything", *DEMO, *GONE)),
        (exit_codes.NOT_CONNECTED, ("call", "mcp__e2e__text", "--mcp-config", config(e2e=entry("hangs_up")))),
        (exit_codes.NOT_FOUND, ("call", "mcp__demo__nothing", *DEMO)),
        (exit_codes.NOT_FOUND, ("call", "mcp__demo__nothing", *DEMO, *GONE)),
        (exit_codes.TIMEOUT, ("call", "mcp__demo__count", "to=9", "seconds=60", "--timeout", "0.1", *DEMO)),
    ],
)
def test_every_result_has_its_exit_code(expected: int, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr
    if words[:2] != ("mcp", "list"):  # a list says why in itself
        assert bool(done.stderr) == (expected != exit_codes.OK), "a failure says why"


@pytest.mark.parametrize(
    "words", [("call", "mcp__mute__x"), ("tools",), ("mcp", "list", "--check"), ("read", "mute", "a://b")]
)
def test_a_server_that_does_not_answer_the_handshake_is_not_connected(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "400")
    done = run(*words, "--mcp-config", config(mute=stdio_server("silent.py")))
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "MCP_TIMEOUT" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "words", [("tools", "add"), ("tools", "search", "adds numbers"), ("tools", "show", "add")]
)
def test_a_failed_server_does_not_hide_the_tools_of_another(words: tuple[str, ...]) -> None:
    done = run(*words, *DEMO, *GONE)
    assert done.returncode == exit_codes.OK
    assert "mcp__demo__add" in done.stdout


LISTS = [("tools",), ("resources",), ("prompts",), ("mcp", "list")]


@pytest.mark.parametrize("words", LISTS, ids=[" ".join(words) for words in LISTS])
def test_a_list_with_an_unreadable_project_file_has_the_exit_code_of_configuration(
    home: Path, words: tuple[str, ...]
) -> None:
    (home / "work" / ".mcp.json").write_text("{broken")
    done = run(*words, *DEMO)
    assert done.returncode == exit_codes.CONFIG
    assert ".mcp.json, line 1" in done.stderr
    assert "demo" in done.stdout, "the rest is listed"


def test_a_call_and_a_list_of_one_server_ignore_an_unreadable_file_of_others(home: Path) -> None:
    (home / "work" / ".mcp.json").write_text("{broken")
    for words in (("call", "mcp__demo__add", "a=1", "b=2"), ("tools", "demo"), ("prompts", "demo")):
        done = run(*words, *DEMO)
        assert done.returncode == exit_codes.OK, words
        assert ".mcp.json, line 1" in done.stderr


def test_an_invalid_setting_has_the_exit_code_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "soon")
    done = run("tools", "--mcp-config", "demo")
    assert done.returncode == exit_codes.CONFIG
    assert "MCP_TIMEOUT" in done.stderr


def test_a_refusal_has_its_own_exit_code() -> None:
    assert exit_codes.for_error(PermissionRefused("shop", "mcp__shop__add", "no")) == exit_codes.REFUSED


def test_the_table_names_every_code_and_the_reference_and_the_readme_have_it() -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert set(exit_codes.MEANINGS) == codes
    reference = (ROOT / "docs" / "reference.md").read_text()
    for code, meaning in exit_codes.MEANINGS.items():
        assert f"| {code} | {meaning} |" in reference
    sentence = re.search(r"Exit codes: (.*?)\.\n", (ROOT / "README.md").read_text(), re.DOTALL)
    assert sentence is not None
    assert {int(number) for number in re.findall(r"(?:^|[\s,])(\d+) ", sentence[1])} == codes


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n  "mcpServers": {\n    "a": {"command": x}\n  }\n}', "line 3, column 22"),
        ('{\n  "mcpServers": {\n    "a": {"command": "x",,}\n  }\n}', "line 3, column 26"),
        ('{\n  "mcpServers": {"Größe": x}\n}', "line 2, column 27"),
        ('{\n  "mcpServers": {\n', "line 3, column 1"),
        ("", "line 1, column 1"),
    ],
    ids=["a-bare-word", "one-comma-too-many", "after-wide-characters", "an-end-too-soon", "an-empty-file"],
)
def test_broken_json_is_reported_with_file_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    done = run("tools", "--mcp-config", file)
    assert done.returncode == exit_codes.CONFIG
    assert f"{file}, {place}: " in done.stderr
    assert done.stdout == ""
