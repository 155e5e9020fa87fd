"""T692: an argument of a command contains bytes that are not text, as a file name may. It is refused with
the reason, without a traceback."""

import os

import pytest

from tests.e2e.command import config, run
from tests.servers import stdio_server

HALF = os.fsdecode(b"a\xff")
REASONS = {
    f"message={HALF}": "error: the arguments do not fit echo: cannot be written as JSON",
    f'{{"message": "{HALF}"}}': "Error: the arguments contain bytes that are not UTF-8 text",
}


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("argument", REASONS, ids=ascii)
def test_t692_a_call_with_such_an_argument_is_refused(argument: str):
    done = run(
        "call", "mcp__calm__echo", argument, "--mcp-config", config(calm=stdio_server("well_behaved.py"))
    )
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert REASONS[argument] in done.stderr


@pytest.mark.requirement("PRM-6")
def test_t692_a_decision_is_explained():
    done = run("permissions", "test", "mcp__calm__echo", f"message={HALF}")
    assert (done.returncode, done.stdout.startswith("mcp__calm__echo would need your permission")) == (
        8,
        True,
    )
