"""`dragoman resources` and `dragoman read`: listed, read, filled in, watched, kept."""

import json
import os
import select
import signal
import subprocess
from pathlib import Path

import pytest

from dragoman.cli import exit_codes
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, config, entry, plain
from tests.e2e.forked import Terminal, in_terminal, run
from tests.e2e.server import PIXEL
from tests.servers import stdio_server

pytestmark = [pytest.mark.slow, pytest.mark.requirement("CAT-9"), pytest.mark.requirement("CLI-2")]

GIVEN = ("--mcp-config", config(e2e=entry("serves")))
BESIDE = ("--mcp-config", config(e2e=entry("serves"), broken=entry("dies")))
PAGES = "e2e://pages/{number}{?language}"


def test_the_list_fits_the_terminal_and_no_uri_is_cut():
    with Terminal("resources", *GIVEN, env={"COLUMNS": "40"}) as terminal:
        output = plain(terminal.finish())
    listed, _, problems = output.partition("! ")
    lines = listed.splitlines()
    assert all(len(line) <= 40 for line in lines)
    for address in ("e2e://note", "e2e://pixel", PAGES):
        assert address in output
    assert "text/plain 6 B" in output
    assert "address has invisible or invalid characters" in " ".join(problems.split())


def test_a_failed_server_is_reported_beside_the_others():
    done = run("resources", *BESIDE)
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "e2e://note" in done.stdout
    assert done.stderr.count("broken") == 1
    assert "last words" in done.stderr

    document = json.loads(run("resources", *BESIDE, "--json").stdout)
    note = next(item for item in document["resources"] if item["uri"] == "e2e://note")
    assert note["mimeType"] == "text/plain"
    page = next(item for item in document["templates"] if item["uriTemplate"] == PAGES)
    assert page["variables"] == ["number", "language"]
    assert [server["status"] for server in document["servers"]] == ["connected", "failed"]
    assert all(problem.startswith("e2e: ") for problem in document["problems"])

    done = run("resources", "--server", "e2e", *BESIDE)
    assert done.returncode == exit_codes.OK, "a resource that cannot be used is no failure of its server"

    done = run("resources", "--mcp-config", config(calm=stdio_server("well_behaved.py")))
    assert (done.returncode, done.stderr) == (exit_codes.OK, "no server offers resources\n")


def test_text_is_printed_unchanged():
    assert run("read", "e2e", "e2e://note", *GIVEN).stdout == "a note"
    code, output = in_terminal("read", "e2e", "e2e://note", *GIVEN)
    assert (code, plain(output).rpartition("\n")[0].endswith("a note")) == (exit_codes.OK, True)


@pytest.mark.parametrize(
    ("values", "printed"),
    [(("number=3",), "page 3"), (("language=de", "number=1 2"), "page 1%202?language=de")],
)
def test_a_template_is_expanded(values: tuple[str, ...], printed: str):
    assert run("read", "e2e", PAGES, *values, *GIVEN).stdout == printed


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((PAGES,), exit_codes.USAGE, "it needs 'number'"),
        ((PAGES, "number=1", "colour=red"), exit_codes.USAGE, "it has no variable 'colour'"),
        ((PAGES, "1"), exit_codes.USAGE, "expected name=value"),
        (("e2e://pages/{nummer}", "nummer=1"), exit_codes.NOT_FOUND, f"Did you mean {PAGES}?"),
        (("e2e://elsewhere",), exit_codes.FAILED, "may have no such resource"),
        (("e2e://note", "-o", "nowhere/x"), exit_codes.USAGE, "there is no folder 'nowhere'"),
    ],
)
def test_a_resource_that_cannot_be_read_is_reported_with_the_next_step(
    words: tuple[str, ...], code: int, told: str
):
    done = run("read", "e2e", *words, *GIVEN)
    assert (done.returncode, done.stdout) == (code, "")
    assert told in done.stderr


def test_unavailable_servers():
    done = run("read", "nobody", "e2e://note", *GIVEN)
    assert done.returncode == exit_codes.NOT_FOUND
    assert "e2e" in done.stderr
    done = run("read", "broken", "e2e://note", *BESIDE)
    assert done.returncode == exit_codes.NOT_CONNECTED
    assert "last words" in done.stderr


def test_binary_data_is_named_on_a_terminal_and_complete_elsewhere():
    code, output = in_terminal("read", "e2e", "e2e://pixel", *GIVEN)
    assert code == exit_codes.OK
    assert "[image/png, 11 bytes: use -o FILE to save it]" in output

    words = [DRAGOMAN, "read", "e2e", "e2e://pixel", *GIVEN]
    assert subprocess.run(words, capture_output=True, timeout=LIMIT_SECONDS, check=True).stdout == PIXEL

    done = run("read", "e2e", "e2e://pixel", "-o", "pixel.png", *GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.OK, "")
    assert "11 bytes written to pixel.png" in done.stderr
    assert Path("pixel.png").read_bytes() == PIXEL

    document = json.loads(run("read", "e2e", "e2e://pixel", *GIVEN, "--json").stdout)
    assert document["contents"][0]["mimeType"] == "image/png"


def read_until(process: subprocess.Popen[bytes], expected: bytes) -> bytes:
    assert process.stdout is not None
    output = b""
    while expected not in output:
        assert select.select([process.stdout], [], [], LIMIT_SECONDS)[0], output
        data = os.read(process.stdout.fileno(), 4096)
        assert data, f"it ended after {output!r}"
        output += data
    return output


def test_a_watched_resource_is_printed_again_when_it_changes_until_ctrl_c():
    words = [DRAGOMAN, "read", "e2e", "e2e://counter", "--watch", *GIVEN]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert read_until(process, b"2 times\n") == b"read 1 times\nread 2 times\n"
            process.send_signal(signal.SIGINT)
            rest = process.communicate(timeout=LIMIT_SECONDS)
        finally:
            process.kill()
    assert (process.returncode, *rest) == (exit_codes.OK, b"", b"")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--call", "echo"), exit_codes.USAGE, "--call needs --watch"),
        (("--watch", "--call", ""), exit_codes.USAGE, "--call needs the name of a tool"),
        (("--watch", "--call", "echo 'a"), exit_codes.USAGE, "--call: No closing quotation"),
        (("--watch", "--call", "ecko"), exit_codes.NOT_FOUND, "there is no tool named ecko"),
    ],
)
def test_a_call_beside_watching_that_cannot_be_made(words: tuple[str, ...], code: int, said: str):
    done = run("read", "e2e", "e2e://counter", *words, *GIVEN)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_watching_a_server_without_subscriptions():
    done = run("read", "demo", "x://y", "--watch", "--mcp-config", "demo")
    assert done.returncode == exit_codes.FAILED
    assert "does not support resource subscriptions" in done.stderr


def test_template_variables_are_completed():
    done = run("read", "e2e", PAGES, "--complete", "number=1", *GIVEN)
    assert done.stdout == "1\n12\n"
    done = run("read", "e2e", PAGES, "--complete", "language=", *GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.OK, "")
    assert "no completions" in done.stderr
    document = json.loads(run("read", "e2e", PAGES, "--complete", "number=12", *GIVEN, "--json").stdout)
    assert document == {"values": ["12"], "hasMore": False, "total": 9}
