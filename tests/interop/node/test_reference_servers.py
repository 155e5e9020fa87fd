"""The reference servers from npm: connected, listed, called, gone."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ImageBlock, TextBlock
from dragoman.content.blocks import ResourceBlock, ResourceLinkBlock
from dragoman.errors import CallTimeout, RemoteError
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]
NO_NETWORK = Path(__file__).parent / "no_network.cjs"


@pytest.mark.needs("server-everything")
class TestEverything:
    async def test_the_everything_server_uses_2025_11_25_and_answers(self, part: Part) -> None:
        async with visit(part("server-everything"), "2025-11-25") as server:
            assert {"echo", "get-sum", "get-tiny-image", "get-structured-content"} <= server.tool_names()
            assert "hello" in (await server.call("echo", message="hello")).text
            assert "42" in (await server.call("get-sum", a=40, b=2)).text
            assert server.view.instructions

    async def test_a_long_operation_reports_progress(self, part: Part) -> None:
        async with visit(part("server-everything"), "2025-11-25") as server:
            seen: list[Any] = []
            operation = "mcp__visited__trigger-long-running-operation"
            outcome = await server.host.call(
                operation, {"duration": 0.4, "steps": 4}, on_progress=seen.append
            )
            assert not outcome.is_error
            assert [each.progress for each in seen] == [1, 2, 3, 4]
            assert {each.total for each in seen} == {4}

    async def test_a_long_operation_can_be_cancelled_and_the_session_continues(self, part: Part) -> None:
        async with visit(part("server-everything"), "2025-11-25") as server:
            operation = "mcp__visited__trigger-long-running-operation"
            with pytest.raises(CallTimeout):
                await server.host.call(operation, {"duration": 600, "steps": 2}, timeout_seconds=0.2)
            call = asyncio.create_task(server.host.call(operation, {"duration": 600, "steps": 2}))
            await asyncio.sleep(0)
            call.cancel()
            assert "hello" in (await server.call("echo", message="hello")).text

    async def test_images_structured_content_annotations_and_resources_have_their_types(
        self, part: Part
    ) -> None:
        async with visit(part("server-everything"), "2025-11-25") as server:
            picture = await server.call("get-tiny-image")
            (image,) = [block for block in picture.content if isinstance(block, ImageBlock)]
            assert image.decode().startswith(b"\x89PNG")

            weather = await server.call("get-structured-content", location="Chicago")
            assert weather.structured == json.loads(weather.text)
            assert "temperature" in weather.structured

            annotated = await server.call("get-annotated-message", messageType="success", includeImage=True)
            assert [type(block) for block in annotated.content] == [TextBlock, ImageBlock]

            links = await server.as_it_came("get-resource-links", count=2)
            assert len([block for block in links.content if isinstance(block, ResourceLinkBlock)]) == 2
            reference = await server.as_it_came("get-resource-reference", resourceType="Text", resourceId=1)
            assert [block for block in reference.content if isinstance(block, ResourceBlock)]

    async def test_the_server_does_not_inherit_the_environment(
        self, part: Part, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SECRET_OF_THE_HOST", "do not tell")
        entry = {**part("server-everything"), "env": {"GIVEN": "yes"}}
        async with visit(entry, "2025-11-25") as server:
            environment = json.loads((await server.call("get-env")).text)
        assert environment["GIVEN"] == "yes"
        assert "SECRET_OF_THE_HOST" not in environment


@pytest.mark.needs("server-filesystem")
async def test_the_filesystem_server_lists_and_reads_its_folder_only(part: Part, tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "letter.txt").write_text("Dear Sultan,\n")
    (tmp_path / "secret.txt").write_text("not for you")
    async with visit(part("server-filesystem", str(folder)), "2025-11-25") as server:
        assert "[FILE] letter.txt" in (await server.call("list_directory", path=str(folder))).text
        letter = await server.call("read_text_file", path=str(folder / "letter.txt"))
        assert letter.text == "Dear Sultan,\n"
        await server.call("write_file", path=str(folder / "reply.txt"), content="Dear Doge,")
        assert (folder / "reply.txt").read_text() == "Dear Doge,"

        outside = await server.outcome("read_text_file", path=str(tmp_path / "secret.txt"))
        assert outside.is_error
        assert "outside" in outside.text
        assert "not for you" not in outside.text


@pytest.mark.needs("server-memory")
async def test_the_memory_server_stores_entities(part: Part, tmp_path: Path) -> None:
    entry = {**part("server-memory"), "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    told = {"name": "Dragoman", "entityType": "interpreter", "observations": ["speaks for both sides"]}
    async with visit(entry, "2025-11-25") as server:
        await server.call("create_entities", entities=[told])
        graph = await server.call("read_graph")
        assert graph.structured["entities"] == [told]
    async with visit(entry, "2025-11-25") as server:
        assert (await server.call("read_graph")).structured["entities"] == [told]


@pytest.mark.needs("server-github")
async def test_the_github_server_uses_the_oldest_revision_and_reports_missing_network(part: Part) -> None:
    entry = {**part("server-github"), "env": {"NODE_OPTIONS": f"--require={NO_NETWORK}"}}
    async with visit(entry, "2024-11-05") as server:
        assert {"search_repositories", "create_issue", "get_file_contents"} <= server.tool_names()
        outcome = await server.outcome("search_repositories", query="dragoman")
        assert outcome.is_error
        assert isinstance(outcome.error, RemoteError)
        assert "fetch failed" in outcome.text, "the server's reason reaches the model"
        assert server.view.status == "connected"
        assert "no network for api.github.com" in server.view.stderr_tail
