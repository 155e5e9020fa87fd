"""Results as text for people."""

from typing import Any

import pytest

from dragoman import Host
from dragoman.cli.render.text import show_outcome
from dragoman.testing import InMemoryServer


@pytest.mark.parametrize(
    ("structured", "shown"),
    [
        ({"result": "14"}, "14\n"),
        ({"content": "14"}, "14\n"),
        ({"sum": 14}, '14\n{\n  "sum": 14\n}\n'),
        ({"result": "14", "more": 1}, '14\n{\n  "result": "14",\n  "more": 1\n}\n'),
    ],
)
async def test_structured_content_equal_to_the_text_is_not_shown(
    structured: dict[str, Any], shown: str, capsys: pytest.CaptureFixture[str]
):
    server = InMemoryServer("box")
    result = {"content": [{"type": "text", "text": "14"}], "structuredContent": structured}
    server.add_tool("give", lambda arguments, context: result, description="Gives.", properties={})
    async with Host({"box": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        show_outcome(await host.call("mcp__box__give", raw=True))
    assert capsys.readouterr().out == shown
