"""The reference server's resources, templates, prompts, completion and updates."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.errors import InvalidArguments, RemoteError
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.needs("server-everything")


@pytest.mark.requirement("CAT-9")
async def test_resources_and_templates_are_listed_completed_read_and_watched(part: Part) -> None:
    async with visit(part("server-everything"), "2025-11-25") as server:
        resources = server.host.resources
        listed = await resources.list()
        assert listed.problems == ()
        (document,) = [each for each in listed if each.uri.endswith("/features.md")]
        assert "# Everything Server" in (await resources.read("visited", document.uri)).text

        (template,) = [each for each in await resources.templates() if "/text/" in each.uri_template]
        assert (await resources.complete("visited", template.uri_template, "resourceId", "7")).values == (
            "7",
        )
        uri = template.expand({"resourceId": "7"})
        assert "Resource 7" in (await resources.read("visited", uri)).text
        with pytest.raises(RemoteError, match="not found"):
            await resources.read("visited", "demo://resource/nowhere")

        async with resources.subscribed("visited", uri) as updates:
            await server.call("toggle-subscriber-updates")
            update = await asyncio.wait_for(anext(updates), 20)
            assert update.uri == uri


@pytest.mark.requirement("CAT-10")
async def test_prompts_are_called_by_a_command_and_completed_in_context(part: Part) -> None:
    async with visit(part("server-everything"), "2025-11-25") as server:
        prompts = server.host.prompts
        result = await prompts.run('/mcp__visited__args-prompt "New York" state=NY')
        assert result.messages[0].content.as_text() == "What's weather in New York, NY?"
        with pytest.raises(InvalidArguments, match="it needs 'city'"):
            await prompts.run("/mcp__visited__args-prompt")

        name = "mcp__visited__completable-prompt"
        (department,) = (await prompts.complete(name, "department", "Sa")).values
        people = await prompts.complete(name, "name", "", given={"department": department})
        assert people.values
        chosen = await prompts.get(name, {"department": department, "name": people.values[0]})
        assert people.values[0] in chosen.messages[0].content.as_text()
