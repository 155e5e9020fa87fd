"""Results of calls that the gateway cuts (`resultTokens`)."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from dragoman import hook, paths
from dragoman.content.tokens import estimate
from dragoman.errors import ConfigError
from dragoman.gateway.settings import View, limited
from dragoman.gateway.settings_file import read_settings
from dragoman.testing import InMemoryServer
from tests.gateway import Client, Json, gateway_of

TOKENS = 1000
pytestmark = pytest.mark.requirement("CAL-7", "GWY-1")


def server_with(result: Json, **definition: Any) -> InMemoryServer:
    server = InMemoryServer("s", revisions=("2025-11-25",))
    server.add_tool("get", lambda arguments, context: result, **definition)
    return server


async def result_of(result: Json, view: str = "", **options: Any) -> Json:
    views = limited({"whole": View(result_tokens=0)}, TOKENS)
    async with (
        gateway_of({"s": server_with(result)}, views=views, **options) as running,
        Client(running.url + (f"/{view}" if view else "")) as client,
    ):
        await client.initialize()
        found: Json = (await client.legacy("tools/call", {"name": "s__get", "arguments": {}})).last
        return found["result"]


def texts(*given: str) -> list[Json]:
    return [{"type": "text", "text": text} for text in given]


@pytest.mark.parametrize(
    "result",
    [
        {"content": texts("small")},
        {"content": texts("small"), "structuredContent": {"a": [1]}, "_meta": {"k": 1}, "more": 2},
        {"content": texts("x" * 3000), "isError": True},
    ],
)
async def test_a_small_result_is_passed_on_unchanged(result: Json):
    assert await result_of(result) == result


async def test_a_larger_text_is_cut_with_a_mark():
    text = "a word and another one\n" * 2000
    found = await result_of({"content": texts(text), "_meta": {"k": 1}})
    cut, note = (block["text"] for block in found["content"])
    kept, _, mark = cut.rpartition("… [")
    assert text.startswith(kept)
    assert mark == f"{len(text) - len(kept)} more characters]"
    assert note == "[the rest is not saved: this gateway limits results to 1000 tokens]"
    assert 500 < estimate(cut + note) <= TOKENS
    assert (found["isError"], found["_meta"]) == (False, {"k": 1})
    assert not (paths.state_dir() / "saved").exists(), "nothing is written here"


async def test_a_view_without_a_limit_passes_on_everything():
    result = {"content": texts("x" * 300_000)}
    assert await result_of(result, "whole") == result


async def test_very_large_texts_are_cut_too():
    found = await result_of({"content": texts("x" * 3_000_000, "y" * 3_000_000), "isError": True})
    assert estimate(json.dumps(found)) <= TOKENS
    assert found["isError"] is True
    assert found["content"][0]["text"].startswith("xxx")


async def test_structured_content_is_kept_if_it_fits_alone():
    structured = {"rows": [1, 2, 3]}
    found = await result_of({"content": texts("x" * 100_000), "structuredContent": structured})
    assert found["structuredContent"] == structured
    assert "more characters]" in found["content"][0]["text"]


async def test_structured_content_that_does_not_fit_is_left_out_or_cut_as_text():
    structured = {"rows": ["word"] * 5000}
    found = await result_of({"content": texts("five thousand rows"), "structuredContent": structured})
    size = len(json.dumps(structured, separators=(",", ":")))
    note = f"[structuredContent of {size} bytes is left out: this gateway limits results to 1000 tokens]"
    assert found == {"isError": False, "content": texts("five thousand rows", note)}
    found = await result_of({"content": [], "structuredContent": structured})
    assert found["content"][0]["text"].startswith('{"rows":["word",')
    assert "structuredContent" not in found


async def test_an_image_is_kept_and_other_data_is_named():
    made = io.BytesIO()
    Image.effect_noise((300, 300), 90).save(made, "PNG")
    image = {"type": "image", "data": base64.b64encode(made.getvalue()).decode(), "mimeType": "image/png"}
    sound = {"type": "audio", "data": base64.b64encode(b"x" * 9000).decode(), "mimeType": "audio/wav"}
    found = await result_of({"content": [*texts("before"), image, sound]})
    assert [block["type"] for block in found["content"]] == ["text", "image", "text"]
    assert found["content"][1] == image
    assert found["content"][2]["text"] == (
        "[audio, declared as audio/wav: 9000 bytes, not saved: this gateway limits results to 1000 tokens]"
    )


async def test_a_result_changed_by_a_hook_is_cut_too():
    def add(event: Any) -> Any:
        return {"hookSpecificOutput": {"additionalContext": "from the hook"}}

    found = await result_of({"content": texts("word " * 50_000)}, hooks=[hook(add, "PostToolUse")])
    assert "more characters]" in found["content"][0]["text"]
    assert estimate(json.dumps(found)) <= TOKENS


async def test_an_output_schema_is_not_listed_if_results_may_be_cut():
    schema = {"type": "object", "properties": {"rows": {"type": "array"}}}
    server = server_with({"content": []}, outputSchema=schema)
    views = limited({"whole": View(result_tokens=0)}, TOKENS)
    async with gateway_of({"s": server}, views=views) as running:
        listed: list[Json] = []
        for path in ("", "/whole"):
            async with Client(running.url + path) as client:
                listed += (await client.modern("tools/list")).last["result"]["tools"]
        assert [tool.get("outputSchema") for tool in listed] == [None, schema]


@pytest.mark.parametrize(("tokens", "is_usable"), [(0, True), (999, False), (1000, True), (-1, False)])
def test_the_limit_in_the_file_is_validated(tmp_path: Path, tokens: int, is_usable: bool):
    path = tmp_path / "gateway.json"
    callers = {"a": {"token": "0123456789abcdef"}}
    for place in ({"resultTokens": tokens}, {"views": {"v": {"resultTokens": tokens}}}):
        path.write_text(json.dumps({"callers": callers, **place}))
        path.chmod(0o600)
        if is_usable:
            read_settings(path)
        else:
            with pytest.raises(ConfigError, match=r"resultTokens.* is less than 1000, and not 0"):
                read_settings(path)
