"""Tools that a server keeps for its own user interface: models have none of them, programs do."""

from typing import Any

import pytest

from dragoman import Host
from dragoman.adapters.answering import make_call
from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import ServerTool
from dragoman.names import ServerName
from dragoman.testing import InMemoryServer
from tests.servers import stdio_server
from tests.unit.fakes import definition

pytestmark = pytest.mark.requirement("CAT-12")

APP = "mcp__board__redraw_board"
MODEL = "mcp__board__show_board"
REFUSED = f"there is no tool named {APP}. It is left out: its server offers it to apps only, not to models."


def board() -> InMemoryServer:
    server = InMemoryServer("board")
    for name, visibility in (("redraw_board", ["app"]), ("show_board", ["model", "app"])):
        meta = {"ui": {"resourceUri": "ui://board", "visibility": visibility}}
        server.add_tool(name, lambda arguments, context: "done", description="The board.", _meta=meta)
    return server


@pytest.fixture
async def host(home: Any) -> Any:
    async with Host({"board": board()}, permission_mode="bypassPermissions") as host:
        await host.ready()
        yield host


async def test_app_tools_are_listed_only_on_request(host: Host):
    assert [tool.name for tool in host.tools()] == [MODEL]
    assert [tool.name for tool in host.tools(include_app_tools=True)] == [APP, MODEL]
    assert (await host.call(APP, {})).text == "done"
    outcomes = await host.call_all([(APP, {}), (MODEL, {})])
    assert [outcome.text for outcome in outcomes] == ["done", "done"]


async def test_a_toolbox_has_no_app_tools_finds_none_and_refuses_them(host: Host):
    box = host.toolbox()
    assert APP not in [tool.name for tool in (*box.tools(), *box.deferred())]
    assert APP not in box.overview()
    for query in ("redraw board", f"select:{APP}"):
        assert APP not in [tool.name for tool in (await box.search(query)).tools]
    assert (await box.call(APP, {})).text == REFUSED
    assert [outcome.text for outcome in await box.call_all([(APP, {}), (MODEL, {})])] == [REFUSED, "done"]


async def test_no_app_tool_is_suggested_for_an_unknown_name(host: Host):
    outcome = await make_call(host, f"{APP}s", {})
    assert outcome.text.startswith(f"there is no tool named {APP}s.")
    assert APP not in outcome.text.removeprefix(f"there is no tool named {APP}s.")


async def test_an_adapter_refuses_app_tools(host: Host):
    async with host.for_agent(["board"]) as agent:
        for caller in (host, agent, host.toolbox()):
            assert (await make_call(caller, APP, {})).text == REFUSED
            assert (await make_call(caller, MODEL, {})).text == "done"


async def test_app_tools_of_an_agents_servers_are_for_programs_only(host: Host):
    async with host.for_agent(["board", {"own": board()}]) as agent:
        await agent.ready()
        assert [tool.name for tool in agent.tools()] == [MODEL, "mcp__own__show_board"]
        names = [tool.name for tool in agent.tools(include_app_tools=True)]
        assert names == [APP, MODEL, "mcp__own__redraw_board", "mcp__own__show_board"]
        assert (await agent.call("mcp__own__redraw_board", {})).text == "done"
        assert agent.is_app_tool("mcp__own__redraw_board")


@pytest.mark.parametrize(
    ("meta", "offered"),
    [
        (None, True),
        ({}, True),
        ({"ui": None}, True),
        ({"ui": {}}, True),
        ({"ui": {"visibility": None}}, True),
        ({"ui": {"visibility": ["model"]}}, True),
        ({"ui": {"visibility": ["app", "model"]}}, True),
        ({"ui": {"visibility": ["app"]}}, False),
        ({"ui": {"visibility": []}}, False),
        ({"ui": {"visibility": ["Model", 5]}}, False),
        ({"ui": {"visibility": "app"}}, False),
        ({"ui": {"visibility": "model"}}, True),
        ({"ui": ["app"]}, True),
        ({"ui/visibility": ["app"]}, True),
    ],
    ids=str,
)
def test_a_tool_is_for_models_unless_its_visibility_leaves_them_out(meta: Any, offered: bool):
    tool = ServerTool(ServerName("s"), qualify("s", "t"), definition("t", meta=meta))
    assert tool.is_for_models is offered


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        ({"ui": {"resourceUri": "ui://board"}}, "ui://board"),
        ({"ui/resourceUri": "ui://older"}, "ui://older"),
        ({"ui": {"resourceUri": "ui://new"}, "ui/resourceUri": "ui://older"}, "ui://new"),
        ({"ui": {"resourceUri": "https://evil.example"}}, None),
        ({"ui": {"resourceUri": 5}}, None),
        ({"ui": "ui://board"}, None),
        (None, None),
    ],
    ids=str,
)
def test_the_page_that_shows_a_tools_results_is_a_ui_resource(meta: Any, expected: str | None):
    tool = ServerTool(ServerName("s"), qualify("s", "t"), definition("t", meta=meta))
    assert tool.ui_resource == expected


UI = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_ui_resource_with_its_metadata_reaches_the_program(era: str, home: Any):
    entry = stdio_server("has_an_app.py", era)
    async with Host({"s": entry}, permission_mode="bypassPermissions", extensions=UI) as host:
        await host.ready()
        (tool,) = host.tools()
        assert tool.ui == {"resourceUri": "ui://board/page", "visibility": ["model", "app"]}
        assert tool.ui_resource is not None
        page = await host.resources.read("s", tool.ui_resource)
        (part,) = page.contents
        assert (part.uri, part.mime_type) == ("ui://board/page", "text/html;profile=mcp-app")
        assert part.text == "<h1>Board</h1>"
        assert part.meta == {"ui": {"csp": {"connectDomains": ["https://api.example"]}}}

        outcome = await host.call(tool.name, {"move": 1})
        assert outcome.text.startswith("moved")
        assert outcome.structured == {"board": [1]}
        assert outcome.meta is not None
        assert outcome.meta["view"] == {"zoom": 2}
        assert outcome.meta["declared"]["io.modelcontextprotocol/ui"] == UI["io.modelcontextprotocol/ui"]


async def test_a_host_without_the_apps_extension_has_no_ui_resources(home: Any):
    async with Host(
        {"s": stdio_server("has_an_app.py", "modern")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready()
        outcome = await host.call("mcp__s__move")
        assert outcome.meta is not None
        assert outcome.meta["declared"] == {"io.modelcontextprotocol/tasks": {}}
