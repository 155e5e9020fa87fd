"""A server that changes its mind about its tools."""

from dragoman import Host
from dragoman.events import ToolsChanged
from tests.integration.waiting import until
from tests.integration.watched import WatchedServer
from tests.servers import stdio_server

CHANGED = "notifications/tools/list_changed"


async def test_a_change_is_read_and_the_new_tool_can_be_called() -> None:
    async with Host(
        {"shop": stdio_server("changes_its_list.py")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(timeout=30)
        listener = host.events()
        await host.call("mcp__shop__grow")
        await until(lambda: "mcp__shop__grown_0" in [tool.name for tool in host.tools()])
        assert host.servers["shop"].tool_count == 3
    changes = [event async for event in listener if isinstance(event, ToolsChanged)]
    assert [event.tool_count for event in changes] == [3]


async def test_a_burst_of_changes_causes_one_or_two_requests_and_the_last_list_applies() -> None:
    server, neighbour = WatchedServer(), WatchedServer()
    async with Host({"shop": server, "other": neighbour}, permission_mode="bypassPermissions") as host:
        await host.ready()
        before = server.methods.count("tools/list")
        for number in range(500):
            server.add_tool(f"new_{number}", lambda arguments, context: "new")
            server.say(CHANGED)
        await until(lambda: len(host.tools()) >= 500)
        assert (await host.call("mcp__shop__new_499")).text == "new"
        assert 1 <= server.methods.count("tools/list") - before <= 2
        assert neighbour.methods.count("tools/list") == 1, "only the list that changed is read"


async def test_a_change_during_a_list_request_is_not_lost() -> None:
    server = WatchedServer()
    async with Host({"shop": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        server.say(CHANGED)
        await until(lambda: server.methods.count("tools/list") == 2)
        server.add_tool("late", lambda arguments, context: "in time")
        server.say(CHANGED)
        await until(lambda: "mcp__shop__late" in [tool.name for tool in host.tools()])


async def test_a_change_notified_together_with_the_first_list_is_read() -> None:
    servers = {"shop": stdio_server("changes_while_listing.py")}
    async with Host(servers, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=30)
        await until(lambda: [tool.name for tool in host.tools()] == ["mcp__shop__a", "mcp__shop__b"])


async def test_a_list_without_end_is_a_problem_and_its_first_pages_can_be_used() -> None:
    servers = {"shop": stdio_server("lists_half.py")}
    async with Host(servers, permission_mode="bypassPermissions", settings={"MCP_TIMEOUT": 2000}) as host:
        view = (await host.ready(timeout=30))["shop"]
        assert (view.status, view.tool_count) == ("connected", 1)
        assert "incomplete" in view.problems[0]
        assert (await host.call("mcp__shop__first")).text == "first"
