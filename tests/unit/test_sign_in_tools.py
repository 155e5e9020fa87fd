"""Pseudo-tools by which a model starts a sign-in: an attempt ends when its server is replaced."""

import asyncio
from types import SimpleNamespace
from typing import Any

from dragoman.sign_in_tools import SignInTools


def waiting_server() -> Any:
    state = SimpleNamespace(status="needs-auth")
    return SimpleNamespace(name="s", takes_sign_in=True, connection=SimpleNamespace(state=state))


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
