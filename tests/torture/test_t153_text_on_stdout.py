"""T153: a server that fails is reported with the text that it printed, not with the errors that its end
caused."""

import sys

import pytest

from dragoman.errors import ConnectTimeout
from tests.torture.bystander_host import at_once

pytestmark = pytest.mark.requirement("LIF-3")

SHORT = {"MCP_TIMEOUT": 1500, "DRAGOMAN_PROBE_TIMEOUT_MS": 200}
PRINTS = """
import sys, time
print("Listening on port 3000", flush=True)
print("Press Ctrl-C to stop", flush=True)
print("loading the model", file=sys.stderr, flush=True)
time.sleep(3600)
"""


async def test_t153_text_on_stdout_is_reported_as_the_reason(bystander_host):
    entry = {"command": sys.executable, "args": ["-c", PRINTS]}
    async with bystander_host(entry, settings=SHORT, wait=False) as a:
        async with at_once(10):
            await a.host.ready(timeout=10)
        error = a.view.error
        assert isinstance(error, ConnectTimeout)
        assert error.cause == (
            "it prints text that is not MCP on stdout: 'Listening on port 3000'; no answer within 1.5 s"
        )
        assert "stderr" in (error.hint or "")
        assert error.stderr_tail == "loading the model"
        assert a.view.stderr_tail == "loading the model", "not the traceback of the signal that ended it"
