"""T507: a deny or ask rule about an argument applies where the argument is an object and the rule matches a
key in it: contents by path."""

from typing import Any

import pytest

from dragoman import Host
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-2")

RULE = "mcp__box__push(files=*/.ssh/*)"
DENIED: dict[str, Any] = {
    "a name": {"/home/me/.ssh/config": "x"},
    "a name further inside": {"tree": {"/home/me/.SSH/config": {"text": "x"}}},
    "a name in a list": [{"/home/me/.ssh/config": None}],
    "a value": {"path": "/home/me/.ssh/config"},
}


async def called(files: Any, **rules: Any) -> list[Any]:
    """The calls that reach the server."""
    server, calls = InMemoryServer("box"), list[Any]()
    server.add_tool("push", lambda arguments, context: calls.append(arguments["files"]) or "done")
    async with Host({"box": server}, rules=rules) as host:
        await host.ready(timeout=20)
        await host.call("mcp__box__push", {"files": files})
    return calls


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("files", DENIED.values(), ids=DENIED.keys())
async def test_t507_a_key_inside_an_argument_is_found(files: Any, kind: str):
    assert await called(files, allow=["mcp__box"], **{kind: [RULE]}) == []


async def test_t507_other_keys_are_not_denied():
    files = {"/home/me/work/ssh": "x"}
    assert await called(files, allow=["mcp__box"], deny=[RULE]) == [files]


async def test_t507_an_allow_rule_does_not_apply_to_keys():
    assert await called({"/home/me/.ssh/config": "x"}, allow=[RULE]) == []
