"""`dragoman prompts` and `dragoman prompt`: listed as commands, filled in, completed."""

import json

import pytest

from dragoman.cli import exit_codes
from tests.e2e.command import config, entry, plain
from tests.e2e.forked import Terminal, run
from tests.servers import stdio_server

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAT-10"), pytest.mark.requirement("CLI-2")]

GIVEN = ("--mcp-config", config(e2e=entry("serves")))
BESIDE = ("--mcp-config", config(e2e=entry("serves"), broken=entry("dies")))
GREET = "mcp__e2e__greet"


def test_the_list_fits_the_terminal_and_shows_how_to_type_each():
    with Terminal("prompts", "--arguments", *GIVEN, env={"COLUMNS": "40"}) as terminal:
        output = plain(terminal.finish())
    listed, _, problems = output.partition("! ")
    lines = listed.splitlines()
    assert all(len(line) <= 40 for line in lines)
    assert f"/{GREET} <name> [tone]" in output
    assert "      name*  Whom to greet." in lines
    assert "has invisible or invalid characters in its name" in " ".join(problems.split())


def test_a_failed_server_is_reported_beside_the_others():
    done = run("prompts", *BESIDE)
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "Greets somebody." in done.stdout
    assert done.stderr.count("broken") == 1

    document = json.loads(run("prompts", "--server", "e2e", *BESIDE, "--json").stdout)
    greet = next(each for each in document["prompts"] if each["name"] == GREET)
    assert (greet["prompt"], greet["server"]) == ("greet", "e2e")
    assert [(each["name"], each["required"]) for each in greet["arguments"]] == [
        ("name", True),
        ("tone", False),
    ]

    done = run("prompts", "--mcp-config", config(calm=stdio_server("well_behaved.py")))
    assert (done.returncode, done.stderr) == (exit_codes.OK, "no server offers prompts\n")


@pytest.mark.parametrize(
    "words",
    [(f"/{GREET}", "name=Ann"), ("greet", "tone=kind", "Ann")],
    ids=["by name", "by place, under its own name"],
)
def test_a_prompt_is_rendered(words: tuple[str, ...]):
    done = run("prompt", *words, *BESIDE if words[0].endswith(GREET) else GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.OK, "user: Hello, Ann!\n")
    assert done.stderr == "Hello, Ann!\n", "only the server that has the prompt is asked"


def test_as_json():
    document = json.loads(run("prompt", GREET, "Ann", *GIVEN, "--json").stdout)
    message = {"role": "user", "content": {"type": "text", "text": "Hello, Ann!"}}
    assert (document["name"], document["messages"], document["problems"]) == (GREET, [message], [])


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((GREET,), exit_codes.USAGE, f"it needs 'name'; usage: /{GREET} <name> [tone]"),
        ((GREET, "name=Ann", "tone=kind", "more"), exit_codes.USAGE, "no argument left for 'more'"),
        (("mcp__e2e__gret", "Ann"), exit_codes.NOT_FOUND, f"Did you mean {GREET}"),
        (("mcp__other__x",), exit_codes.NOT_FOUND, "there is no prompt named mcp__other__x"),
        ((GREET, "--complete", "name"), exit_codes.USAGE, "expected name=value"),
    ],
)
def test_invalid_arguments_of_a_prompt_are_reported_with_the_next_step(
    words: tuple[str, ...], code: int, told: str
):
    done = run("prompt", *words, *GIVEN)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr


def test_a_prompt_of_a_server_that_fails():
    done = run("prompt", "mcp__broken__greet", "Ann", *BESIDE)
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "last words" in done.stderr
    document = json.loads(run("prompt", "mcp__e2e__gret", *GIVEN, "--json").stdout)
    assert "no prompt named" in document["error"]["message"]


def test_arguments_are_completed():
    done = run("prompt", GREET, "--complete", "name=An", *GIVEN)
    assert (done.stdout, done.stderr) == ("Ann\nAnna\n", "… of 9\n")
    done = run("prompt", GREET, "name=Ann", "--complete", "tone=", *GIVEN)
    assert done.stdout == "kind to Ann\nstern to Ann\n"
