"""Resources of real servers: listed, read, kept; for programs, for people and for models."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallOutcome, Host, ImageBlock
from dragoman.agent.mentions import expanded
from dragoman.calls.reading_tools import resource_tools
from dragoman.content.saving import mark_of
from dragoman.errors import HostClosed, HostNotOpen, InputUnavailable, InvalidArguments, RemoteError
from dragoman.events import ResourcesChanged
from dragoman.hooks.declared import hook
from dragoman.interaction import FormAnswer, FormElicitation, PermissionAnswer, PermissionQuestion
from dragoman.testing import ScriptedUser
from tests.integration.libraries import LEGACY, MODERN, Way, ways
from tests.integration.waiting import until
from tests.servers.library import PIXEL, Library

pytestmark = pytest.mark.requirement("CAT-9")
BOOKS = ["book://divan", "book://atlas", "book://deed", "book://empty", "book://secret"]


@ways
async def test_resources_are_listed_over_all_pages_and_read(way: Way):
    async with way() as host:
        found = await host.resources.list()
        assert [each.uri for each in found] == BOOKS
        assert (found.problems, found.items[0].description) == ((), "The divan")
        assert (await host.resources.read("lib", "book://divan")).text == "Poems"
        assert (await host.resources.read("lib", "book://empty")).contents == ()
        with pytest.raises(RemoteError, match="no such book") as caught:
            await host.resources.read("lib", "book://none")
        assert "list its resources" in (caught.value.hint or "")


@ways
async def test_a_template_is_listed_expanded_completed_and_read(way: Way):
    async with way() as host:
        (template,) = await host.resources.templates("lib")
        assert template.variables == ("name", "page")
        suggested = await host.resources.complete("lib", template.uri_template, "name", "di")
        assert suggested.values == ("divan",)
        uri = template.expand({"name": suggested.values[0], "page": "2"})
        assert uri == "book://divan?page=2"
        assert (await host.resources.read("lib", uri)).text == "Poems"


class Reader:
    """Says who reads."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        raise AssertionError(question)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return FormAnswer("accept", {"name": "Ada"})


async def test_a_modern_server_may_require_input_before_a_read():
    async with Way("in-process", MODERN)(interaction=Reader()) as host:
        assert (await host.resources.read("lib", "book://secret")).text.startswith("for those")
    async with Way("in-process", MODERN)() as host:
        with pytest.raises(InputUnavailable, match="elicitation/create"):
            await host.resources.read("lib", "book://secret")


async def test_a_resource_read_after_an_answer_is_not_cached():
    library = Library(revisions=(MODERN,), ttl_ms=60_000)
    async with Host({"lib": library}, interaction=Reader(), permission_mode="bypassPermissions") as host:
        await host.ready()
        for uri, requests in (("book://secret", 4), ("book://divan", 5)):
            for _ in range(2):
                await host.resources.read("lib", uri)
            assert library.heard.count("resources/read") == requests, uri


@pytest.mark.requirement("CAT-5", "LIF-2")
@pytest.mark.parametrize("revision", [MODERN, LEGACY])
async def test_lists_are_read_at_connect_cached_and_read_again_after_a_change(revision: str):
    library = Library(revisions=(revision,))
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        listener = host.events()
        await host.ready()
        await until(lambda: library.heard.count("resources/list") == 3)
        await host.resources.list()
        await host.resources.list("lib")
        assert library.heard.count("resources/list") == 3, "three pages, once"
        library.acquire("chronicle")
        await until(lambda: library.heard.count("resources/list") == 6)
        assert "book://chronicle" in [each.uri for each in await host.resources.list()]
        assert library.heard.count("resources/list") == 6
    counts = [event.resource_count async for event in listener if isinstance(event, ResourcesChanged)]
    assert counts == [5, 6]


@pytest.mark.requirement("CAT-5")
async def test_a_resource_with_a_ttl_is_read_once_and_again_after_an_update():
    library = Library(revisions=(MODERN,), ttl_ms=60_000)
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        await host.ready()
        async with host.resources.subscribed("lib", "book://divan") as updates:
            for _ in range(3):
                await host.resources.read("lib", "book://divan")
            assert library.heard.count("resources/read") == 1
            library.touch("book://divan")
            await anext(updates)
            await host.resources.read("lib", "book://divan")
            assert library.heard.count("resources/read") == 2


@pytest.mark.requirement("CAT-5", "LIF-4")
async def test_cached_values_of_an_ended_connection_are_not_used():
    library = Library(revisions=(MODERN,), ttl_ms=60_000)
    async with Host({"lib": library}, permission_mode="bypassPermissions") as host:
        await host.ready()
        await host.resources.list()
        await host.disable("lib", remember=False)
        assert (await host.resources.list()).items == ()
        before = len(library.heard)
        await host.enable("lib", remember=False)
        assert len(await host.resources.list()) == 5
        assert "resources/list" in library.heard[before:]


async def test_one_broken_server_does_not_affect_the_others():
    servers = {"lib": Library(), "gone": {"command": "/nonexistent/program"}}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        found = await host.resources.list()
        assert len(found) == 5
        assert [problem[:5] for problem in found.problems] == ["gone:"]


# For models and people.


async def test_a_model_lists_freely_and_reads_only_with_permission(home: Path):
    person = ScriptedUser(False, True)
    async with Way("in-process", MODERN)(permission_mode="default", interaction=person) as host:
        own = {tool.name: tool for tool in resource_tools(host.resources, host._reader)}
        listed = await host.call("list_mcp_resources", {}, builtin_tools=own)
        assert [each["uri"] for each in json.loads(listed.text)["resources"]] == BOOKS
        assert person.asked == []
        wanted = {"server": "lib", "uri": "book://divan"}
        assert "not allowed" in (await host.call("read_mcp_resource", wanted, builtin_tools=own)).text
        assert (await host.call("read_mcp_resource", wanted, builtin_tools=own)).text == "Poems"
        assert [question.tool for question in person.asked] == ["read_mcp_resource"] * 2


async def test_a_model_gets_images_and_the_paths_of_other_data(home: Path):
    async with Way("in-process", LEGACY)() as host:
        own = {tool.name: tool for tool in resource_tools(host.resources, host._reader)}

        async def read(uri: str, server: str = "lib") -> Any:
            return await host.call("read_mcp_resource", {"server": server, "uri": uri}, builtin_tools=own)

        atlas = await read("book://atlas")
        assert isinstance(atlas.content[0], ImageBlock)
        assert [(saved.kind, saved.path.read_bytes()) for saved in atlas.saved] == [("image", PIXEL)]
        assert f"-{mark_of('lib')}-" in atlas.saved[0].path.name, "in the share of the server"
        told = (await read("book://deed")).text
        assert Path(told.rpartition("saved as ")[2].rstrip("]")).read_bytes() == b"%PDF-1.7 deed"
        assert (await read("book://empty")).text == "[the resource is empty]"
        missing = await read("book://none")
        assert missing.is_error
        assert "no such book" in missing.text
        assert "not configured" in (await read("book://divan", server="nobody")).text
        wrong = await host.call("read_mcp_resource", {"server": "lib"}, builtin_tools=own)
        assert wrong.is_error


async def read_without_a_server(host: Host, uri: str) -> CallOutcome:
    return await host.toolbox().call("read_mcp_resource", {"uri": uri})


@pytest.mark.parametrize("uri", ["book://divan", "book://divan?page=2"], ids=["listed", "template"])
async def test_a_model_need_not_name_the_server_if_only_one_has_the_resource(home: Path, uri: str):
    person, given = ScriptedUser(True), []
    other = Library()
    other.holdings, other.lists_templates = {"note://a": {"text": "A note"}}, False

    def look(event: dict[str, Any]) -> None:
        given.append((event["tool_name"], event["tool_input"], event["mcp_server_name"]))

    async with Host(
        {"lib": Library(), "notes": other},
        interaction=person,
        hooks=[hook(look, "PreToolUse", matcher="read_mcp_resource")],
    ) as host:
        await host.ready()
        assert (await read_without_a_server(host, uri)).text == "Poems"
    wanted = {"uri": uri, "server": "lib"}
    assert given == [("read_mcp_resource", wanted, "lib")]
    assert [(question.tool, question.arguments) for question in person.asked] == [
        ("read_mcp_resource", wanted)
    ]


async def test_a_listed_resource_takes_precedence_over_a_matching_template(home: Path):
    only_template = Library()
    only_template.holdings = {}
    servers = {"lib": Library(), "copy": only_template}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert await host.resources.server_of("book://divan") == "lib"


async def test_if_several_servers_or_none_have_the_resource_the_error_asks_for_the_server(home: Path):
    servers = {"lib": Library(), "copy": Library(), "gone": {"command": "/nonexistent/program"}}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready()
        several = await read_without_a_server(host, "book://divan")
        none = await read_without_a_server(host, "note://a")
        assert several.text == (
            "the arguments do not fit read_mcp_resource: several servers have this resource, so name one of "
            "them: copy, lib"
        )
        assert none.text.startswith(
            "the arguments do not fit read_mcp_resource: no connected server lists this resource or has a "
            "template for it, so name a server; gone: "
        )
        for outcome in (several, none):
            assert isinstance(outcome.error, InvalidArguments)


async def test_mentions_in_a_persons_text_are_read_for_the_model(home: Path):
    async with Way("in-process", MODERN)() as host:
        text = "Compare @lib:book://divan with @lib:book://none and mail me@lib.example."
        message, (problem,) = await expanded(text, host, home)
        assert message == f'{text}\n\n<resource name="lib:book://divan">\nPoems\n</resource>'
        assert problem.startswith("@lib:book://none was not added: lib answered error -32602")


async def test_a_closed_host_reads_no_resources():
    host = Host({"lib": Library()})
    with pytest.raises(HostNotOpen):
        _ = host.resources
    async with host:
        assert host.resources is host.resources
    with pytest.raises(HostClosed):
        _ = host.prompts
