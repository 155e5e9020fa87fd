"""T155: an optional field that is null or of a wrong type counts as missing; the reply is not lost."""

import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.content.blocks import (
    AudioBlock,
    ImageBlock,
    ResourceBlock,
    ResourceData,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from dragoman.content.result import read_large_now, read_result
from tests.servers import stdio_server

pytestmark = pytest.mark.requirement("CAL-6")

TEXT = {"type": "text", "text": "fine"}


@pytest.mark.parametrize("read", [read_result, read_large_now])
@pytest.mark.parametrize(
    "beside",
    [
        {"isError": None},
        {"isError": False},
        {"isError": 0},
        {"isError": "false"},
        {"_meta": []},
        {"_meta": None},
        {"_meta": "text"},
        {"_meta": 7},
        {"resultType": None},
        {"structuredContent": None},
        {"isError": None, "_meta": [], "resultType": None, "unknown": None},
    ],
    ids=str,
)
def test_t155_wrong_fields_beside_the_content_count_as_missing(read: Any, beside: dict[str, Any]):
    result, content = read(Raw(json.dumps({"content": [TEXT], **beside}).encode()))

    assert content == (TextBlock("fine"),)
    assert (result.is_error, result.meta, result.result_type) == (False, None, "complete")


@pytest.mark.parametrize("read", [read_result, read_large_now])
@pytest.mark.parametrize("said", [True, "true", "yes", 1, [], {}], ids=str)
def test_t155_an_error_with_a_wrong_error_flag_is_not_a_success(read: Any, said: Any):
    result, content = read(Raw(json.dumps({"content": [TEXT], "isError": said}).encode()))

    assert result.is_error
    assert content == (TextBlock("fine"),)


@pytest.mark.parametrize("read", [read_result, read_large_now])
def test_t155_null_content_counts_as_empty(read: Any):
    result, content = read(Raw(b'{"content": null, "structuredContent": {"a": 1}}'))

    assert content == ()
    assert result.structured == {"a": 1}


@pytest.mark.parametrize("read", [read_result, read_large_now])
@pytest.mark.parametrize(
    ("sent", "read_as"),
    [
        ({**TEXT, "annotations": None, "_meta": []}, TextBlock("fine")),
        ({"type": "image", "data": "AAAA", "mimeType": None}, ImageBlock("AAAA")),
        ({"type": "audio", "data": "AAAA", "mimeType": 7}, AudioBlock("AAAA")),
        (
            {"type": "resource_link", "uri": "a:b", "name": None, "title": 7, "size": "9", "mimeType": []},
            ResourceLinkBlock("a:b"),
        ),
        (
            {"type": "resource", "resource": {"uri": "a:b", "text": "fine", "mimeType": 7, "blob": []}},
            ResourceBlock(ResourceData("a:b", text="fine")),
        ),
        ({"type": "text", "text": None}, UnknownBlock({"type": "text", "text": None})),
        ({"type": None}, UnknownBlock({"type": None})),
        ({"type": []}, UnknownBlock({"type": []})),
        (7, UnknownBlock(7)),
    ],
    ids=str,
)
def test_t155_a_wrong_optional_field_of_a_block_affects_only_itself(read: Any, sent: Any, read_as: Any):
    _, content = read(Raw(json.dumps({"content": [sent, TEXT]}).encode()))

    assert content == (read_as, TextBlock("fine"))


async def test_t155_a_call_with_wrong_optional_fields_succeeds(bystander_host):
    inside = '"isError":null,"_meta":[],"content":[{"type":"text","text":"fine","annotations":null}],"x":"'
    async with bystander_host(stdio_server("answers_at_length.py")) as a:
        for count in (10, 200_000):
            assert await a.call("act", before=inside, piece="x", count=count, after='"') == "fine"
        await a.serves_still()
