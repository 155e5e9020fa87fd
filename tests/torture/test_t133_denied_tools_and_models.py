"""T133: a tool of which a deny rule covers every call is not shown to a model by any list of tools."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import RunContext, RunUsage
from pydantic_ai.models.test import TestModel

from dragoman import Host
from dragoman.adapters import langchain, openai, pydantic_ai
from dragoman.adapters.answering import make_call
from dragoman.testing import InMemoryServer
from tests.e2e.forked import run
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")

READ, DROP = "mcp__box__read", "mcp__box__drop"
RULES = {
    "the tool": "mcp__box__drop",
    "a pattern": "mcp__*__dr*",
    "what the server calls it, in other letters": "mcp__box__DROP",
    "a definition": f"mcp__box__drop@{'0' * 32}",
    "what it says of itself": "mcp__box(destructive, openWorld)",
    "a rule that cannot be read": "mcp__box__drop(a=",
}
SHOWN = {
    "another tool": "mcp__box__drops",
    "another server": "mcp__bo",
    "some arguments": "mcp__box__drop(all=true)",
    "some arguments, and what it says of itself": "mcp__box(destructive, all=true)",
    "what it does not say of itself": "mcp__box(destructive, !openWorld)",
}


def box() -> InMemoryServer:
    server = InMemoryServer("box")
    for name, annotations in (
        ("read", {"readOnlyHint": True}),
        ("drop", {"destructiveHint": True, "openWorldHint": True}),
    ):
        server.add_tool(
            name, lambda arguments, context: "done", description="A tool.", annotations=annotations
        )
    return server


@asynccontextmanager
async def opened(home: Path, rule: str) -> AsyncIterator[Host]:
    projects.user(home, {"permissions": {"deny": [rule]}})
    async with Host.configured(servers={"box": box()}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        yield host


async def shown(caller: Any) -> list[list[str]]:
    """The names of the box's tools in every list that a model may receive."""
    context = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
    lists: list[list[str]] = [
        [tool.name for tool in caller.tools()],
        [tool["function"]["name"] for tool in openai.chat_tools(caller.tools())],
        [tool["name"] for tool in openai.responses_tools(caller.tools())],
        [tool.name for tool in langchain.tools(caller)],
        list(await pydantic_ai.Toolset(caller).get_tools(context)),
    ]
    return [sorted(name for name in names if name.startswith("mcp__")) for names in lists]


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
async def test_t133_a_denied_tool_is_not_shown_to_a_model(home: Path, rule: str):
    async with (
        opened(home, rule) as host,
        host.for_agent(["box"]) as sharing,
        host.for_agent([{"own": box()}]) as owner,
    ):
        for caller in (host, sharing, host.toolbox()):
            assert await shown(caller) == [[READ]] * 5
            outcome = await make_call(caller, DROP, {})
            assert outcome.is_error
            assert "deny rule" in outcome.text
        await owner.ready(timeout=20)
        mine = [tool.name for tool in owner.tools()]
        assert mine == (
            ["mcp__own__read"] if rule.startswith("mcp__*") else ["mcp__own__drop", "mcp__own__read"]
        )


@pytest.mark.parametrize("rule", SHOWN.values(), ids=SHOWN)
async def test_t133_a_tool_of_which_some_calls_are_allowed_is_shown(home: Path, rule: str):
    async with opened(home, rule) as host, host.for_agent(["box"]) as agent:
        for caller in (host, agent, host.toolbox()):
            assert await shown(caller) == [[DROP, READ]] * 5


async def test_t133_a_program_can_list_denied_tools(home: Path):
    async with opened(home, "mcp__box__drop") as host, host.for_agent(["box"]) as agent:
        for caller in (host, agent):
            assert [tool.name for tool in caller.tools(include_denied=True)] == [DROP, READ]
            assert [tool.name for tool in caller.tools(include_app_tools=True)] == [READ]


def test_t133_a_person_sees_denied_tools_with_the_rule(home: Path):
    demo = ("--mcp-config", "demo")
    projects.user(home, {"permissions": {"deny": ["mcp__demo__add"]}})
    assert "mcp__demo__add" in run("tools", *demo).stdout
    assert "mcp__demo__add" in run("tools", "search", "add", *demo).stdout
    refused = run("call", "add", "a=1", "b=2", *demo)
    assert refused.returncode == 6
    assert "deny rule mcp__demo__add of user" in refused.stderr
