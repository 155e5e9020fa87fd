"""T11: A server that does not start, or exits, is reported at once with its exit status and last output."""

import signal
from pathlib import Path

import pytest

from dragoman.errors import CommandNotFound, ConnectionLost, NotConnected, StartFailed
from dragoman.events import ServerFailed, ServerLost
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until

LAST_LINES = r"\x1b[31mdisk is � full\x1b[0m"


def script(folder: Path, text: bytes, mode: int) -> dict[str, str]:
    path = folder / "program"
    path.write_bytes(text)
    path.chmod(mode)
    return {"command": str(path)}


NOT_STARTING = {
    "no such program": (lambda _: {"command": "no-such-program-anywhere"}, CommandNotFound, "on PATH"),
    "no such path": (lambda _: {"command": "/no/such/path"}, CommandNotFound, "/no/such/path"),
    "not executable": (lambda f: script(f, b"#!/bin/sh\n", 0o644), StartFailed, "is not executable"),
    "a folder": (lambda f: {"command": str(f)}, StartFailed, "is a folder, not a program"),
    "no program format": (lambda f: script(f, b"\x00\x01\x02", 0o755), StartFailed, "cannot be run"),
    "an interpreter that is not there": (
        lambda f: script(f, b"#!/no/sh\n", 0o755),
        CommandNotFound,
        "the interpreter in the #! line of",
    ),
    "no such working directory": (lambda _: {"command": "true", "cwd": "/no/dir"}, StartFailed, "/no/dir"),
}


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize(("entry", "kind", "words"), NOT_STARTING.values(), ids=NOT_STARTING.keys())
async def test_t11_the_error_names_a_program_that_cannot_be_started(
    bystander_host, tmp_path, entry, kind, words
):
    async with bystander_host(entry(tmp_path), wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        error = a.view.error
        assert a.view.status == "failed"
        assert type(error) is kind
        assert (error.server, error.phase) == ("hostile", "start")
        assert words in str(error)
        assert error.hint
        await until(lambda: a.happened(ServerFailed))


ENDINGS = {
    "exit 0": (0, 0, "exited with code 0"),
    "exit 1": (1, 1, "exited with code 1"),
    "SIGKILL": (-signal.SIGKILL, -signal.SIGKILL, "ended by SIGKILL"),
    "SIGSEGV": (-signal.SIGSEGV, -signal.SIGSEGV, "ended by SIGSEGV"),
}


@pytest.mark.requirement("TRN-1", "LIF-3")
@pytest.mark.parametrize("when", ["start", "greeting", "list"])
@pytest.mark.parametrize(("how", "exit_code", "words"), ENDINGS.values(), ids=ENDINGS.keys())
async def test_t11_a_server_that_exits_while_connecting_is_reported_with_its_last_output(
    bystander_host, when, how, exit_code, words
):
    async with bystander_host(stdio_server("exits.py", when, str(how)), wait=False) as a:
        async with at_once():
            await a.host.ready(timeout=10)
        error = a.view.error
        assert isinstance(error, StartFailed)
        assert "hostile" in str(error)
        assert words in str(error)
        assert error.exit_code == a.view.exit_code == exit_code
        assert error.stderr_tail.splitlines()[-2:] == ["opening the database", LAST_LINES]
        assert a.view.stderr_tail == error.stderr_tail


@pytest.mark.requirement("CAL-6")
@pytest.mark.parametrize(("how", "exit_code", "words"), ENDINGS.values(), ids=ENDINGS.keys())
async def test_t11_a_server_that_exits_during_a_call_fails_it_at_once(
    bystander_host, era, how, exit_code, words
):
    async with bystander_host(stdio_server("exits.py", "call", str(how), protocol=era)) as a:
        with pytest.raises(ConnectionLost, match=f"hostile.*{words}.*may have run") as caught:
            async with at_once():
                await a.call("act")
        assert caught.value.may_have_run
        await until(lambda: a.happened(ServerLost))
        await until(lambda: a.view.status == "failed")
        assert a.view.exit_code == exit_code
        assert LAST_LINES in a.view.stderr_tail
        with pytest.raises(NotConnected, match="hostile has failed"):
            async with at_once():
                await a.call("act")
