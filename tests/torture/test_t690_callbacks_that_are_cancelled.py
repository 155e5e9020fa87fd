"""T690: callbacks of the program are cancelled while a host waits for them, as when a front end closes its
dialog, or raise `CancelledError`. The call is not cancelled: it has an outcome, and its server gets an
answer."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallOutcome, Host, hook
from dragoman.testing import InMemoryServer
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.conftest import LEGACY, MODERN

FORM = {"message": "Who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
MESSAGES = [{"role": "user", "content": {"type": "text", "text": "Hello"}}]
REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "elicitation/create": (FORM, '"cancel"'),
    "sampling/createMessage": ({"messages": MESSAGES, "maxTokens": 5}, "the model could not be asked"),
    "roots/list": ({}, "roots/list could not be answered"),
}

SERVER = """
import json, sys

INFO = {"name": "s", "version": "1"}
INITIALIZED = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO}
UNKNOWN = {"error": {"code": -32601, "message": "unknown"}}
TOOLS = {"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}
DONE = {"content": [{"type": "text", "text": "done"}]}
RESULTS = {"initialize": INITIALIZED, "tools/list": TOOLS, "tools/call": DONE}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    known = message["method"] in RESULTS
    reply = {"result": RESULTS[message["method"]]} if known else UNKNOWN
    told = [{"jsonrpc": "2.0", "id": message["id"], **reply}]
    token = message.get("params", {}).get("_meta", {}).get("progressToken")
    if token is not None:
        params = {"progressToken": token, "progress": 1}
        told.insert(0, {"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    sys.stdout.write("".join(json.dumps(each) + "\\n" for each in told))
    sys.stdout.flush()
"""


class ClosedDialog:
    """Each dialog is closed while it is waited for. Also a model that is cancelled."""

    async def _answer(self, *_: Any) -> Any:
        dialog: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(dialog.cancel)
        return await dialog

    allow = elicit_form = list_roots = sample = judge = _answer


def raises(*_: Any) -> None:
    raise asyncio.CancelledError


async def echoed(**options: Any) -> CallOutcome:
    server = InMemoryServer("box")
    server.add_tool("echo", lambda arguments, context: "hi")
    async with Host({"box": server}, **options) as host:
        await host.ready(timeout=20)
        async with at_once():
            return await host.call("mcp__box__echo")


@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("method", REQUESTS)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_t690_a_request_of_a_server_is_answered(era: str, method: str):
    params, answer = REQUESTS[method]
    entry = stdio_server("asks_during_calls.py", protocol=era, sampling="allow", roots=True)
    options: Any = {"interaction": ClosedDialog(), "sampler": ClosedDialog()}
    async with Host({"box": entry}, permission_mode="bypassPermissions", **options) as host:
        await host.ready(timeout=20)
        asking = {"method": method, "params": params, "in_round": era == MODERN}
        async with at_once():
            outcome = await host.call("mcp__box__ask", asking)
    assert answer in outcome.text


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize("mode", ["default", "auto"])
async def test_t690_a_call_whose_question_is_cancelled_is_denied(mode: Any):
    outcome = await echoed(permission_mode=mode, interaction=ClosedDialog(), classifier=ClosedDialog())
    assert outcome.is_error
    assert "denied by the person: asking failed: CallbackCancelled: it was cancelled" in outcome.text


@pytest.mark.requirement("PRM-5")
async def test_t690_a_cancelled_function_hook_does_not_fail_the_call():
    outcome = await echoed(permission_mode="bypassPermissions", hooks=[hook(raises, "PreToolUse")])
    assert outcome.text == "hi"


@pytest.mark.requirement("PRM-5")
async def test_t690_a_cancelled_hook_that_blocks_on_errors_blocks_the_call():
    guard = hook(raises, "PreToolUse", blocks_on_error=True)
    outcome = await echoed(permission_mode="bypassPermissions", hooks=[guard])
    assert outcome.is_error
    assert "the hook raises failed" in outcome.text


@pytest.mark.requirement("CAL-2")
async def test_t690_responses_after_a_cancelled_progress_callback_are_read(tmp_path: Path):
    (tmp_path / "server.py").write_text(SERVER)
    entry = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    async with Host({"box": entry}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        async with at_once():
            outcome = await host.call("mcp__box__count", on_progress=raises)
    assert outcome.text == "done"
