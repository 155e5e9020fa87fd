"""T842: the function of a program that is given the progress of a call raises what is no `Exception`, as
`pytest.fail` and the panics of extensions do. Neither this call nor another one loses its answer, although
the server writes all of them at once."""

import sys

import pytest

from dragoman import Host
from tests.torture.bystander_host import at_once
from tests.torture.test_t690_callbacks_that_are_cancelled import SERVER


class Panic(BaseException):
    """As extensions in Rust raise it."""


@pytest.mark.requirement("CAL-2")
@pytest.mark.parametrize("error", [Panic, GeneratorExit, pytest.fail.Exception])
async def test_t842_a_call_whose_progress_function_fails_has_its_answer(error: type[BaseException]):
    def fail(_: object) -> None:
        raise error

    entry = {"command": sys.executable, "args": ["-c", SERVER]}
    async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        async with at_once(10):
            outcome = await host.call("mcp__s__count", on_progress=fail, timeout_seconds=20)
        assert outcome.text == "done"
