"""T45: Saved data of tool results stays in its folder, is limited, gets our file names, and is never
opened."""

import base64
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman import paths
from dragoman.content.blocks import ImageBlock
from dragoman.content.media import Media
from dragoman.content.prepare import Prepared, Preparer
from dragoman.content.result import is_large, read_large, read_result
from dragoman.content.saving import Saver
from tests.torture.test_t45_saving_blobs import LIES, encoded, everything_below

pytestmark = pytest.mark.requirement("CAL-7")


async def prepared(*content: Any, saver: Saver | None = None) -> Prepared:
    raw = Raw(json.dumps({"content": content}).encode())
    result, blocks = await read_large(raw) if is_large(raw) else read_result(raw)
    return await Preparer(Media(saver)).prepare(result, blocks)


def spellings(uri: str, mime_type: str, data: str) -> list[dict[str, Any]]:
    return [
        {"type": "image", "data": data, "mimeType": mime_type},
        {"type": "audio", "data": data, "mimeType": mime_type},
        {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "blob": data}},
    ]


@pytest.mark.parametrize("size", [1, 10_000], ids=["small", "large"])
@pytest.mark.parametrize(("uri", "mime_type"), LIES, ids=lambda value: ascii(value)[:30])
async def test_t45_no_name_or_type_in_a_result_leads_outside_the_folder(
    home: Path, uri: str, mime_type: str, size: int
):
    before = everything_below(home)
    blocks = spellings(uri, mime_type, encoded(b"#!/bin/sh\nrm -rf ~\n" * size))
    found = await prepared(*blocks)
    made = everything_below(home) - before

    assert {saved.path for saved in found.saved} == made
    assert len(made) == 3
    for file in made:
        assert file.parent == paths.state_dir() / "saved"
        assert file.suffix in (".bin", ".txt")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert all(block.as_text().isprintable() for block in found.content)


@pytest.mark.parametrize(
    "data", ["%%%", "A", "=" * 1000, "A" * 10_001, "AA==AA==", "A" * 200_001, "é" * 100_000]
)
async def test_t45_invalid_base64_in_a_result_is_an_error_message_and_not_a_file(home: Path, data: str):
    before = everything_below(home)
    found = await prepared(*spellings("x:y", "a/b", data))

    assert len(found.content) == 3
    assert all("not valid base64" in block.as_text() for block in found.content)
    assert everything_below(home) == before


async def test_t45_an_svg_with_a_script_is_not_treated_as_an_image(home: Path):
    svg = encoded(b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    found = await prepared(*spellings("a.svg", "image/svg+xml", svg))

    assert not any(isinstance(block, ImageBlock) for block in found.content)
    assert {saved.path.suffix for saved in found.saved} == {".txt"}


async def test_t45_a_resource_link_with_a_size_of_two_gigabytes_is_shown_as_one_line(home: Path):
    before = everything_below(home)
    found = await prepared(
        {"type": "resource_link", "uri": "file:///etc/passwd", "name": "../../x", "size": 2 * 1024**3}
    )

    assert found.content[0].as_text() == "[resource ../../x: file:///etc/passwd, 2147483648 bytes]"
    assert everything_below(home) == before


async def test_t45_saving_results_stops_at_the_quota(tmp_path: Path):
    saver = Saver(tmp_path / "saved", quota_bytes=100_000)
    found = await prepared(*spellings("x:y", "a/b", encoded(os.urandom(30_000))) * 5, saver=saver)
    words = await prepared({"type": "text", "text": "word " * 100_000}, saver=saver)

    assert sum(path.stat().st_size for path in everything_below(tmp_path)) <= 100_000
    assert "full" in found.content[-1].as_text()
    assert "not saved" in words.content[-1].as_text()


async def test_t45_data_over_the_file_limit_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.content.media.HELD_LIMIT_BYTES", 10_000)
    saver = Saver(tmp_path / "saved", file_limit_bytes=50_000)
    found = await prepared(*spellings("x:y", "a/b", base64.b64encode(bytes(200_000)).decode()), saver=saver)

    assert everything_below(tmp_path) == set()
    assert all("larger than the limit of 50000 bytes" in block.as_text() for block in found.content)
