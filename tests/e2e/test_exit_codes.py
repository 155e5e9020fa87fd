"""The exit codes: what each one means, told by an example. Scripts depend on them."""

import re
from pathlib import Path

import pytest

from dragoman.cli import exit_codes
from dragoman.errors import PermissionRefused
from tests.e2e.command import ROOT, config, entry, run
from tests.servers import zoo

DEMO = ("--mcp-config", "demo")
GONE = ("--mcp-config", config(gone={"command": "no-such-program"}))


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (exit_codes.OK, ("call", "mcp__demo__add", "a=1", "b=2", *DEMO)),
        (exit_codes.OK, ("call", "mcp__demo__add", "a=1", "b=2", *DEMO, *GONE)),
        (exit_codes.TOOL_ERROR, ("call", "mcp__demo__fail", *DEMO)),
        (exit_codes.TOOL_ERROR, ("call", "mcp__e2e__error", "--mcp-config", config(e2e=entry("serves")))),
        (exit_codes.USAGE, ()),
        (exit_codes.USAGE, ("frobnicate",)),
        (exit_codes.USAGE, ("tools", "--frobnicate")),
        (exit_codes.USAGE, ("call",)),
        (exit_codes.USAGE, ("tools", *DEMO, "--server", "other")),
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
        (exit_codes.UNKNOWN_TOOL, ("call", "mcp__demo__nothing", *DEMO)),
        (exit_codes.UNKNOWN_TOOL, ("call", "mcp__demo__nothing", *DEMO, *GONE)),
        (exit_codes.TIMEOUT, ("call", "mcp__demo__count", "to=9", "seconds=60", "--timeout", "0.1", *DEMO)),
    ],
)
def test_an_ending_has_its_code(expected: int, words: tuple[str, ...]) -> None:
    done = run(*words)
    assert done.returncode == expected, done.stderr
    assert "Traceback" not in done.stderr
    assert bool(done.stderr) == (expected != exit_codes.OK), "a failure says why"


def test_a_server_that_does_not_answer_the_handshake_is_a_matter_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "400")
    done = run("call", "mcp__mute__x", "--mcp-config", config(mute=zoo("silent.py")))
    assert done.returncode == exit_codes.TIMEOUT
    assert "MCP_TIMEOUT" in done.stderr


def test_a_bad_setting_is_a_matter_of_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_TIMEOUT", "soon")
    done = run("tools", "--mcp-config", "demo")
    assert done.returncode == exit_codes.CONFIG
    assert "MCP_TIMEOUT" in done.stderr


def test_a_refusal_has_its_code_although_this_version_of_the_command_never_refuses() -> None:
    assert exit_codes.for_error(PermissionRefused("shop", "mcp__shop__add", "no")) == exit_codes.REFUSED


def test_the_readme_names_every_code() -> None:
    sentence = re.search(r"Exit codes: (.*?)\.\n", (ROOT / "README.md").read_text(), re.DOTALL)
    assert sentence is not None
    named = {int(number) for number in re.findall(r"(?:^|[\s,])(\d+) ", sentence[1])}
    assert named == {value for name, value in vars(exit_codes).items() if name.isupper() and name[0] != "_"}


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
def test_broken_json_is_told_with_file_line_and_column(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "servers.json"
    file.write_text(text)
    done = run("tools", "--mcp-config", file)
    assert done.returncode == exit_codes.CONFIG
    assert f"{file}, {place}: " in done.stderr
    assert done.stdout == ""
