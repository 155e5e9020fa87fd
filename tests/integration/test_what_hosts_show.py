"""What a host shows of its servers: cleaned, with warnings, and nothing of a server that is switched off."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.errors import NotConnected
from dragoman.testing import InMemoryServer
from tests.servers import zoo


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
async def test_a_server_that_is_disabled_leaves_nothing_in_the_catalogue(home: Path):
    async with Host({"box": server()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert host.servers["box"].tool_count == 1
        await host.disable("box")
        assert host.servers["box"].tool_count == 0
        assert host.tools() == []
        with pytest.raises(NotConnected, match="disabled by the person"):
            await host.call("mcp__box__open", {})
        await host.enable("box")
        assert (await host.call("mcp__box__open", {})).text == "done"


@pytest.mark.requirement("CFG-5")
async def test_unknown_fields_are_among_the_problems_of_a_server(home: Path):
    async with Host({"box": {**zoo("calm.py"), "comand": "x"}}) as host:
        await host.ready()
        said = "the entry has a field 'comand' that this version does not know; did you mean command?"
        assert host.servers["box"].problems == (said,)
