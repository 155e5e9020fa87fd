"""What a host shows of its servers: cleaned, with warnings, and nothing of a server that is switched off."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import NotConnected
from dragoman.hooks.declared import hook
from dragoman.testing import InMemoryServer
from tests.servers import stdio_server


def server(instructions: str | None = None) -> InMemoryServer:
    made = InMemoryServer("box", instructions=instructions)
    made.add_tool("open", lambda arguments, context: "done")
    return made


@pytest.mark.requirement("CAT-2")
async def test_instructions_are_cleaned_and_cut(home: Path):
    async with Host({"box": server("a\u202eb\u200bc\x1b[31md\U000e0041e" + "x" * 5000)}) as host:
        await host.ready()
        text = host.instructions()["box"]
        assert text.startswith("abcdexxx")
        assert len(text) <= 2048


@pytest.mark.requirement("LIF-4")
async def test_a_disabled_server_has_no_tools_in_the_catalogue(home: Path):
    box = server()
    box.contents.add_resource("note://a", "a")
    box.contents.add_prompt("hello", lambda _: "hello", [], {})
    async with Host({"box": box}, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert host.servers["box"].tool_count == 1
        assert (len(await host.resources.list()), len(await host.prompts.list())) == (1, 1)
        await host.disable("box")
        assert host.servers["box"].tool_count == 0
        assert host.tools() == []
        assert (len(await host.resources.list()), len(await host.prompts.list())) == (0, 0)
        with pytest.raises(NotConnected, match="disabled by the person"):
            await host.call("mcp__box__open", {})
        await host.enable("box")
        assert (await host.call("mcp__box__open", {})).text == "done"


@pytest.mark.requirement("CFG-5")
async def test_unknown_fields_are_among_the_problems_of_a_server(home: Path):
    async with Host({"box": {**stdio_server("well_behaved.py"), "comand": "x"}}) as host:
        await host.ready()
        said = "the entry has a field 'comand' that this version does not know; did you mean command?"
        assert host.servers["box"].problems == (said,)


@pytest.mark.requirement("CAT-8")
async def test_a_conversation_gets_instructions_and_at_each_turn_their_changes(home: Path):
    servers = {"box": server("Open it gently."), "lid": server("Close it."), "mute": server()}
    async with Host(servers) as host:
        await host.ready()
        box, later = host.toolbox(), host.toolbox()
        whole = box.instructions()
        assert whole.startswith("# Instructions of MCP servers")
        assert whole.endswith("## box\n\n> Open it gently.\n\n## lid\n\n> Close it.")
        assert box.instructions_delta() == whole
        assert box.instructions_delta() == ""
        await host.disable("lid", remember=False)
        changed = "# Instructions of MCP servers: what changed\n\n## lid\n\nIts instructions no longer apply."
        assert box.instructions_delta() == changed
        assert later.instructions_delta() == box.instructions(), "each conversation is told by itself"


@pytest.mark.requirement("CAT-8")
async def test_an_agent_gets_the_instructions_of_its_servers_only(home: Path):
    async with Host({"box": server("Open it gently."), "lid": server("Close it.")}) as host:
        await host.ready()
        async with host.for_agent(["box", {"own": server("Mine.")}]) as agent:
            await agent.ready()
            assert agent.instructions() == {"box": "Open it gently.", "own": "Mine."}


@pytest.mark.requirement("PRM-5")
async def test_session_start_context_is_available_to_the_program(home: Path):
    may_end = asyncio.Event()

    async def slowly(event: dict[str, Any]) -> dict[str, Any]:
        await may_end.wait()
        return {"hookSpecificOutput": {"additionalContext": f"started by {event['source']}"}}

    async with Host({}, hooks=[hook(slowly, "SessionStart")]) as host:
        asked = asyncio.create_task(host.session_context())
        await asyncio.sleep(0)
        assert not asked.done()
        may_end.set()
        assert await asked == ("started by startup",)
        assert await host.session_context() == ("started by startup",)
    async with Host({}) as host:
        assert await host.session_context() == ()
