"""Prompts of real servers: listed, called by a command line, completed."""

import pytest

from dragoman import Host
from dragoman.content.blocks import ImageBlock, TextBlock
from dragoman.errors import CallError, InvalidArguments
from dragoman.events import PromptsChanged
from tests.integration.libraries import LEGACY, MODERN, Way, ways
from tests.integration.test_resources import Reader
from tests.integration.waiting import until
from tests.servers.library import Library

pytestmark = pytest.mark.requirement("CAT-10")


@ways
async def test_prompts_are_listed_and_called_by_a_command(way: Way):
    async with way() as host:
        found = await host.prompts.list()
        assert [each.usage for each in found] == [
            "/mcp__lib__review <book> [tone]",
            "/mcp__lib__greet",
            "/mcp__lib__ask <book> [tone]",
        ]
        result = await host.prompts.run('/mcp__lib__review "the divan" tone=kind')
        first, second = result.messages
        assert first.content == TextBlock('review: {"book": "the divan", "tone": "kind"}')
        assert (first.role, second.role) == ("user", "assistant")
        assert isinstance(second.content, ImageBlock)
        assert result.description == "Said so"
        with pytest.raises(InvalidArguments, match="it needs 'book'"):
            await host.prompts.run("/mcp__lib__review")
        with pytest.raises(CallError, match="no prompt named"):
            await host.prompts.run("/mcp__lib__nothing")


@ways
async def test_arguments_are_completed_with_what_is_known(way: Way):
    async with way() as host:
        name = "mcp__lib__review"
        assert (await host.prompts.complete(name, "book", "d")).values == ("divan", "deed")
        known = await host.prompts.complete(name, "tone", "k", given={"book": "divan"})
        assert known.values == ("kind for divan",)


async def test_a_modern_server_may_require_input():
    async with Way("in-process", MODERN)(interaction=Reader()) as host:
        result = await host.prompts.run("/mcp__lib__ask divan")
        assert result.messages[0].content == TextBlock('ask: {"book": "divan"}')


@pytest.mark.requirement("LIF-2", "CAT-5")
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_a_new_prompt_is_listed_after_a_list_changed_notification(revision: str):
    library = Library(revisions=(revision,))
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        listener = host.events()
        await host.ready()
        await host.prompts.list()
        await host.prompts.list()
        assert library.heard.count("prompts/list") == 2, "two pages, once"
        library.acquire("recite")
        await until(lambda: library.heard.count("prompts/list") == 4)
        assert "mcp__lib__recite" in [each.name for each in await host.prompts.list()]
        assert library.heard.count("prompts/list") == 4
        assert library.heard.count("tools/list") == 2, "only what changed is read"
    counts = [event.prompt_count async for event in listener if isinstance(event, PromptsChanged)]
    assert counts == [3, 4]


async def test_prompts_of_two_servers_with_similar_names_are_distinguished():
    servers = {"my lib": Library(), "my_lib": Library()}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        names = [each.name for each in await host.prompts.list()]
        assert len(set(names)) == 6
        one = next(each for each in await host.prompts.list("my lib") if each.wire_name == "greet")
        assert one.name in names
        assert (await host.prompts.get(one.name)).server == "my lib"
