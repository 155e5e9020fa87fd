"""T98: a secret of an entry is masked in the result of a background call also after the entry has changed."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.scopes import Sources
from tests.integration.waiting import until
from tests.torture import projects

pytestmark = pytest.mark.requirement("AUT-11")
OLD, NEW = "s3cr3t-0f-th1s-entry", "an0ther-s3cr3t-value"
SERVER = """
import os
from dragoman.testing import InMemoryServer

def tell(arguments, context):
    if arguments:
        raise ValueError(os.environ["API_TOKEN"])
    return os.environ["API_TOKEN"]

server = InMemoryServer("box")
server.add_tool("tell", tell, properties={"fails": {"type": "boolean"}})
server.run_stdio()
"""


def configure(home: Path, token: str) -> None:
    entry = {"command": sys.executable, "args": [str(home / "server.py")], "env": {"API_TOKEN": token}}
    projects.user(home, {"mcpServers": {"box": entry}, "permissions": {"allow": ["mcp__box"]}})


@pytest.mark.parametrize("arguments", [{}, {"fails": True}], ids=["a result", "an error"])
async def test_t98_the_result_of_a_background_call_is_masked_with_the_entry_it_was_made_with(
    home: Path, arguments: dict[str, Any]
):
    (home / "server.py").write_text(SERVER)
    configure(home, OLD)
    async with Host(Sources.here()) as host:
        await host.ready()
        called = await host.call("mcp__box__tell", arguments, background_after_seconds=0)
        task = called.task
        assert task is not None

        async def is_over() -> bool:
            return (await host.tasks.get(task)).status != "working"

        await until(is_over)
        configure(home, NEW)
        await host.reload()
        await host.ready()
        fetched = await host.tasks.result(task)
    assert OLD not in repr(fetched)
    assert "[secret]" in fetched.text
