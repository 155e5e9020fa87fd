"""T135: arguments of the command line, file names and exported text do not control the terminal when they
are printed."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dragoman.cleaning import is_safe
from dragoman.cli import main
from tests.e2e.forked import run
from tests.torture import projects
from tests.torture.projects import COMMANDS, servers

pytestmark = pytest.mark.requirement("CAT-2")

HOSTILE = "x\x1b]0;t\x07\x1b[31m\u202e\u200b\u3164\x9b\U000e0041y"
"""A title, a colour, and characters that Python's `repr` shows or leaves as they are."""
ENDLESS = ("--watch", "--help")


def spelled(command: str) -> Iterator[list[str]]:
    """The command with the hostile argument in every position that takes one."""
    words = command.split()
    parameters = COMMANDS[command].get_params(click.Context(COMMANDS[command]))
    needed = [
        str(each.type.choices[0]) if isinstance(each.type, click.Choice) else HOSTILE
        for each in parameters
        if isinstance(each, click.Argument) and (each.required or isinstance(each.type, click.Choice))
    ]
    yield [*words, *needed]
    yield [*words, *[HOSTILE] * 4]
    yield [*words, f"--{HOSTILE}"]
    for place in (f"@{HOSTILE}", f"@/{HOSTILE}", f"localhost:1/{HOSTILE}", f"{HOSTILE}=1"):
        yield [*words, "box", place]
        yield [*words, place]
    for option in parameters:
        if not isinstance(option, click.Option) or option.opts[-1] in ENDLESS:
            continue
        yield [*words, option.opts[-1], *([] if option.is_flag else [HOSTILE]), *needed]
    if any(option.opts[-1] == "--mcp-config" for option in parameters):
        entry = json.dumps({"mcpServers": {HOSTILE: {"command": HOSTILE}}}, ensure_ascii=False)
        for given in (f"{{{HOSTILE}", f"https://{HOSTILE}", entry):
            yield [*words, "--mcp-config", given, *needed]
        yield [*words, "--stdio", f"'{HOSTILE}"]
        yield [*words, "--stdio", f"http://{HOSTILE}"]


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"demo", "completion", "serve"}))
def test_t135_a_command_escapes_its_arguments_in_messages(
    home: Path, command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (home / "work" / HOSTILE).write_text("[]")
    for words in spelled(command):
        monkeypatch.setattr("sys.argv", ["dragoman", *words])
        main._run()  # pyright: ignore[reportPrivateUsage]
        shown = capsys.readouterr()
        for text in (shown.out, shown.err):
            assert is_safe(text.replace("\n", "")), (words, text)


def test_t135_serve_escapes_its_arguments_in_messages(home: Path):
    (home / "work" / HOSTILE).write_text("[]")
    for words in spelled("serve"):
        done = run(*words, "--stdio") if "--stdio" not in words else run(*words)
        assert is_safe((done.stdout + done.stderr).replace("\n", "")), words


@pytest.mark.parametrize("name", ["args\x1b[2J\nError: all is well", "args\u202e\x1b[2J\nx"], ids=ascii)
def test_t135_the_name_of_an_arguments_file_is_printed_in_one_line(home: Path, name: str):
    (home / "work" / name).write_text("[]")
    done = run("call", "add", f"@{name}", "--mcp-config", "demo")
    assert done.returncode == 2
    shown = "Error: expected one JSON object with the arguments in args"
    assert [line for line in done.stderr.splitlines() if line.startswith("Error: ")] == [
        line for line in done.stderr.splitlines() if line.startswith(shown)
    ]
    assert "\x1b" not in done.stderr
    assert "\u202e" not in done.stderr


@pytest.mark.parametrize("host", ["codex", "cursor"])
def test_t135_exported_text_is_shown_with_visible_control_characters(home: Path, host: str):
    projects.user(home, servers(box={"command": "/bin/true", "args": [HOSTILE]}))
    done = run("mcp", "export", host, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "/bin/true" in done.stdout
    assert is_safe(done.stdout.replace("\n", ""))
