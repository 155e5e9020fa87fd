"""T822: servers with very many tools and resources. Opening `/mcp` and typing `@` does not block the
terminal application, and with it the calls of all servers."""

import pytest

from dragoman import Host
from dragoman.testing import InMemoryServer
from dragoman.tui.completion import LIMIT, CompletionItem, fitting
from dragoman.tui.servers_screen import TOOLS_SHOWN, server_text
from tests.cpu_time import CpuTimer, shortest

pytestmark = pytest.mark.requirement("AGT-1", "AGT-4")
RESOURCES = 40_000


@pytest.mark.parametrize("word", ["", "files", "FILE:///"])
def test_t822_completion_takes_linear_time(word: str):
    choices = [CompletionItem(f"files:file:///project/{number}") for number in range(RESOURCES)]

    def seconds() -> float:
        timer = CpuTimer()
        assert fitting(word, choices) == choices[:LIMIT]
        return timer.seconds()

    assert shortest(seconds, below=0.5) < 0.5


async def test_t822_the_number_of_tools_on_the_screen_is_limited():
    server = InMemoryServer("many")
    for number in range(TOOLS_SHOWN + 2):
        server.add_tool(f"tool_{number:05}", lambda arguments, context: "done")
    async with Host({"many": server}) as host:
        view = (await host.ready(timeout=20))["many"]
        lines = server_text(view, host.tools()).plain.split("\n")
    assert len([line for line in lines if "  tool_" in line]) == TOOLS_SHOWN
    assert f"{TOOLS_SHOWN + 2} tools, about " in "\n".join(lines)
    assert lines[-1] == "  and 2 tools more: dragoman tools many"
