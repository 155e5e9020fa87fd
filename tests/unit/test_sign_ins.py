"""Pseudo-tools by which a model starts a sign-in: an attempt ends when its server is replaced."""

import asyncio
from types import SimpleNamespace
from typing import Any

from dragoman.sign_ins import SignInTools


def waiting_server(name: str = "s") -> Any:
    state = SimpleNamespace(status="needs-auth")
    return SimpleNamespace(name=name, uses_oauth=True, connection=SimpleNamespace(state=state))


async def test_an_attempt_ends_when_its_server_is_replaced():
    ended: list[str] = []

    async def sign_in(name: str, screen: Any) -> Any:
        await screen.show_url("https://login.example/", lambda url: False)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    servers: Any = {"s": waiting_server()}
    tools = SignInTools(servers, sign_in)
    (tool,) = tools.tools().values()
    assert "https://login.example/" in await tool.run({})
    servers["s"] = waiting_server()
    assert list(tools.tools().values()) != [tool]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert ended == ["s"]
    await tools.close()


async def test_sign_in_tools_with_the_same_name_get_distinct_names():
    async def sign_in(name: str, screen: Any) -> Any:
        screen.notice(name)

    servers: Any = {name: waiting_server(name) for name in ("a.b", "a_b", "c")}
    tools = SignInTools(servers, sign_in).tools()
    assert {tool.signs_in_to for tool in tools.values()} == {"a.b", "a_b", "c"}
    assert [name for name in tools if name.endswith("__authenticate")] == ["mcp__c__authenticate"]
    assert all(name == tool.name for name, tool in tools.items())
    del servers["a.b"]
    assert list(SignInTools(servers, sign_in).tools()) == ["mcp__a_b__authenticate", "mcp__c__authenticate"]
