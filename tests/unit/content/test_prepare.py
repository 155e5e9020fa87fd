"""What a model is given of a result."""

import base64
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.content.blocks import ImageBlock, TextBlock
from dragoman.content.media import IMAGE_LIMIT, PART_LIMIT, Media
from dragoman.content.prepare import BLOCK_COUNT_LIMIT, Prepared, Preparer, Redactor, ResultLimits
from dragoman.content.result import is_large, read_large_now, read_result
from dragoman.content.saving import Saver
from tests.unit.content.test_media import drawn

pytestmark = pytest.mark.requirement("CAL-7")

LONG = "".join(f"line {number}\n" for number in range(50_000))


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def data(kind: str, content: bytes, **more: Any) -> dict[str, Any]:
    return {"type": kind, "data": base64.b64encode(content).decode(), **more}


class Bench:
    """Prepares results as if they came from a server."""

    def __init__(self, folder: Path, **limits: int) -> None:
        self.saver = Saver(folder, **limits)
        self.preparer = Preparer(Media(self.saver))

    async def given(self, *content: Any, is_quick: bool = False, owner: str = "", **options: Any) -> Prepared:
        names = {"structured": "structuredContent", "is_error": "isError"}
        value = {"content": content} | {names[key]: options.pop(key) for key in names if key in options}
        raw = Raw(json.dumps(value).encode())
        result, blocks = (read_large_now if is_large(raw) else read_result)(raw)
        quick = self.preparer.prepare_quickly(result, blocks, **options)
        slow = await self.preparer.prepare(result, blocks, owner=owner, **options)
        if is_quick:
            assert quick == slow
        return slow


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "saved")


def texts(prepared: Prepared) -> list[str]:
    return [block.as_text() for block in prepared.content]


@pytest.mark.parametrize(
    ("content", "structured", "shown"),
    [
        ([], None, []),
        ([text("a"), text("b")], None, ["a", "b"]),
        ([text('{"n": 1}')], {"n": 1}, ['{"n": 1}']),
        ([text("one")], {"n": 1, "m": 2}, ["one", '{"n":1,"m":2}']),
        ([], {"n": 1}, ['{"n":1}']),
        ([text("")], [], ["", "[]"]),
    ],
    ids=str,
)
async def test_small_results_are_unchanged_and_structured_content_appears_once(
    bench: Bench, content: list[Any], structured: Any, shown: list[str]
):
    prepared = await bench.given(*content, structured=structured, is_quick=True)

    assert texts(prepared) == shown
    assert prepared.saved == ()


@given(
    st.lists(st.text(max_size=30), max_size=5),
    st.none() | st.dictionaries(st.text(), st.integers(), max_size=3),
)
@settings(max_examples=50)
async def test_the_fast_path_and_the_full_path_give_the_same_result(
    tmp_path_factory: pytest.TempPathFactory, said: list[str], structured: Any
):
    bench = Bench(tmp_path_factory.getbasetemp() / "saved")
    usable = [each.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for each in said]
    await bench.given(*map(text, usable), structured=structured, is_quick=True)


@pytest.mark.parametrize("said", ["x" * 99_990, "é" * 27_000], ids=["characters", "tokens"])
async def test_a_text_just_within_the_limits_is_complete(bench: Bench, said: str):
    prepared = await bench.given(text(said))

    assert texts(prepared) == [said]


@pytest.mark.parametrize(
    "said",
    [LONG, "x" * 100_001, "7" * 30_000, "😀" * 70_000, "\x01" * 100_001],
    ids=lambda said: ascii(said[:5]),
)
async def test_a_text_over_a_limit_is_saved_in_full_and_the_model_gets_its_ends(bench: Bench, said: str):
    prepared = await bench.given(text(said))
    (saved,) = prepared.saved
    head, note, tail = texts(prepared)

    assert saved.path.read_text() == said
    assert said.startswith(head)
    assert said.endswith(tail)
    assert str(saved.path) in note
    assert saved.handle in note
    assert len("".join(texts(prepared))) < 12_000
    assert os.stat(saved.path).st_mode & 0o077 == 0


async def test_lower_limits_also_apply_to_the_shown_ends(bench: Bench):
    bench.preparer.limits = ResultLimits(tokens=500)
    head, note, tail = texts(await bench.given(text("7" * 9000)))

    assert (len(head), len(tail)) == (250, 62)
    assert "read_result" in note


async def test_without_a_writable_folder_a_text_is_cut_with_a_marker(bench: Bench):
    bench.saver.folder.parent.joinpath("saved").write_text("in the way")
    for said, left_out in ((LONG, len(LONG) - 100_000), ("x" * 3_000_000, 2_900_000)):
        cut, why = texts(await bench.given(text(said)))
        assert cut.startswith(said[:20_000])
        assert len(cut) <= 100_040
        found = re.search(r"… \[(\d+) more characters\]$", cut)
        assert found is not None
        assert int(found[1]) >= left_out
        assert "not saved" in why


async def test_large_structured_content_is_saved_to_its_own_file(bench: Bench):
    rows = [{"id": number, "name": f"n{number}"} for number in range(20_000)]
    prepared = await bench.given(text("20000 rows"), structured={"rows": rows, "next": None})
    (saved,) = prepared.saved
    first, _, note, _ = texts(prepared)

    assert first == "20000 rows"
    assert json.loads(saved.path.read_text()) == {"rows": rows, "next": None}
    assert saved.kind == "json"
    assert "Its shape: {rows: [20000 × {id: integer, name: string}], next: null}" in note
    assert f'read_result(handle="{saved.handle}", grep="some words")' in note


@pytest.mark.parametrize("count", [500, 20_000])
async def test_the_same_json_as_text_and_as_structured_content_makes_one_file(bench: Bench, count: int):
    rows = {"rows": [{"id": number, "name": f"näme {number}"} for number in range(count)]}
    prepared = await bench.given(text(json.dumps(rows, indent=2)), structured=rows)

    assert len(prepared.saved) == (count > 500)
    assert sum("n\\u00e4me 7" in shown or "näme 7" in shown for shown in texts(prepared)) == 1


async def test_ten_thousand_texts_become_one(bench: Bench):
    prepared = await bench.given(*[text(f"{number}") for number in range(10_000)])
    assert len(prepared.content) == 3
    assert prepared.saved[0].path.read_text() == "\n".join(map(str, range(10_000)))
    few = await bench.given(*[text("a") for _ in range(BLOCK_COUNT_LIMIT + 1)])
    assert texts(few) == ["\n".join("a" * (BLOCK_COUNT_LIMIT + 1))]


async def test_blocks_beyond_the_limit_are_saved_as_received(bench: Bench):
    many = [text("abc")] * 12_000
    prepared = await bench.given(*many)

    assert json.loads(prepared.saved[0].path.read_text()) == many
    assert "more blocks of content than are shown" in texts(prepared)[-1]


async def test_images_are_shown_and_other_data_is_named(bench: Bench):
    picture = drawn("PNG")
    prepared = await bench.given(
        text("before"),
        data("image", picture, mimeType="image/jpeg"),
        data("audio", b"RIFF\0\0\0\0WAVEdata", mimeType="audio/x-wav"),
        text("after"),
    )
    first, image, last, note = prepared.content

    assert (first, last) == (TextBlock("before"), TextBlock("after"))
    assert image == ImageBlock(base64.b64encode(picture).decode(), "image/png")
    shown, saved = prepared.saved
    assert (shown.kind, shown.path.suffix, shown.path.read_bytes()) == ("image", ".png", picture)
    assert (saved.kind, saved.path.suffix, saved.size_bytes) == ("audio", ".wav", 16)
    assert note.as_text() == f"[audio, declared as audio/x-wav: 16 bytes, saved as {saved.path}]"


async def test_a_broken_image_is_reported_in_a_sentence(bench: Bench):
    broken = drawn("PNG")[:40]
    (block,) = (await bench.given(data("image", broken, mimeType="image/png"))).content

    assert "the image cannot be read" in block.as_text()
    (block,) = (await bench.given(data("image", b"hello", mimeType="image/png"))).content
    assert "it is no PNG, JPEG, GIF or WebP image; 5 bytes, saved as" in block.as_text()
    (block,) = (await bench.given({"type": "image", "data": "%%%"})).content
    assert "not valid base64" in block.as_text()


async def test_a_flood_of_images_and_of_data_is_bounded(bench: Bench):
    prepared = await bench.given(*[data("image", drawn("PNG"))] * (IMAGE_LIMIT + 3))
    assert sum(isinstance(block, ImageBlock) for block in prepared.content) == IMAGE_LIMIT
    assert len(prepared.saved) == IMAGE_LIMIT + 3
    flood = await bench.given(*[data("audio", b"x")] * (PART_LIMIT + 5))
    assert len(flood.saved) == PART_LIMIT
    assert len(flood.content) < 60


async def test_an_image_is_saved_as_received_even_if_the_model_gets_a_smaller_one(bench: Bench):
    large = drawn("PNG", (4000, 1000))
    prepared = await bench.given(data("image", large))

    (image,), (saved,) = prepared.content, prepared.saved
    assert isinstance(image, ImageBlock)
    assert base64.b64decode(image.data) != large
    assert (saved.path.read_bytes(), saved.size_bytes) == (large, len(large))


async def test_images_that_were_shown_do_not_use_the_budget_of_texts(tmp_path: Path):
    bench = Bench(tmp_path / "saved", file_count_limit=3)
    for _ in range(5):
        prepared = await bench.given(data("image", drawn("PNG")), owner="box")
        assert [saved.kind for saved in prepared.saved] == ["image"]
    sounds = [await bench.given(data("audio", b"x"), owner="box") for _ in range(3)]
    assert [len(prepared.saved) for prepared in sounds] == [1, 1, 1]
    # No room is left: the image is shown all the same.
    prepared = await bench.given(data("image", drawn("PNG")), owner="box")
    assert [type(block) for block in prepared.content] == [ImageBlock]
    assert prepared.saved == ()
    assert [
        saved.kind for saved in (await bench.given(data("image", drawn("PNG")), owner="other")).saved
    ] == ["image"]


@pytest.mark.parametrize("size", [10, 300_000], ids=["small", "large"])
async def test_resources_are_opened_whatever_their_size(bench: Bench, size: int):
    def resource(**fields: Any) -> dict[str, Any]:
        return {"type": "resource", "resource": {"uri": "x:y", "mimeType": "text/plain", **fields}}

    words = "word " * (size // 5)
    shown = await bench.given(resource(text=words))
    assert texts(shown)[0].startswith("[resource x:y, declared as text/plain]")
    assert any(words[:8] in each for each in texts(shown))
    blob = bytes(range(256)) * (size // 10)
    (saved,) = (await bench.given(resource(blob=base64.b64encode(blob).decode()))).saved
    assert saved.path.read_bytes() == blob


async def test_a_large_image_is_reduced_and_very_large_data_is_saved_without_decoding(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
):
    from tests.unit.content.test_media import noisy

    (image,) = (await bench.given(data("image", noisy("PNG", 1800)))).content
    assert isinstance(image, ImageBlock)
    monkeypatch.setattr("dragoman.content.media.HELD_LIMIT_BYTES", 1000)
    sound = b"OggS" + os.urandom(200_000)
    (saved,) = (await bench.given(data("audio", sound))).saved
    assert saved.path.read_bytes() == sound
    assert saved.path.suffix == ".ogg"
    (block,) = (await bench.given({"type": "audio", "data": "A" * 200_000 + "%"})).content
    assert "not valid base64" in block.as_text()


def link(**fields: Any) -> dict[str, Any]:
    return {"type": "resource_link", "uri": "file:///a", **fields}


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (link(), "[resource file:///a]"),
        (
            link(name="a", title="A file", mimeType="text/plain", size=2_000_000_000),
            "[resource A file: file:///a, text/plain, 2000000000 bytes]",
        ),
        (link(name="a\x1b[31m\n", description="d\u202e"), "[resource a\\x1b[31m\\n: file:///a, d\\u202e]"),
        ({"type": "hologram", "depth": 3}, "[content of unknown type 'hologram']"),
        ({"type": "\x1b]0;x\x07"}, "[content of unknown type '\\\\x1b]0;x\\\\x07']"),
        (7, "[content of unknown type 'None']"),
    ],
    ids=str,
)
async def test_links_and_unknown_types_are_one_line(bench: Bench, block: Any, line: str):
    assert texts(await bench.given(block)) == [line]


async def test_a_large_block_of_unknown_type_is_named_and_saved(bench: Bench):
    block = {"type": "hologram", "points": [1] * 100_000}
    prepared = await bench.given(block)

    assert json.loads(prepared.saved[0].path.read_text()) == block
    assert texts(prepared)[0].startswith("[content of unknown type 'hologram', ")


# Promises, secrets.


def complain(structured: Any) -> list[str]:
    return [] if isinstance(structured, dict) else ["it is no object"]


@pytest.mark.parametrize(
    ("structured", "problems"),
    [
        ({"a": 1}, ()),
        ([1], ("it is no object",)),
        ([1] * 100_000, ("it is no object",)),
        ([1] * 1_000_000, ("structuredContent was not checked: it has 3000000 bytes",)),
    ],
    ids=["kept", "broken", "broken at length", "too large"],
)
async def test_structured_content_is_validated_with_the_output_schema(
    bench: Bench, structured: Any, problems: tuple[str, ...]
):
    assert (await bench.given(structured=structured, output_check=complain)).problems == problems


@pytest.mark.parametrize("size", [1, 3000, 100_000], ids=["small", "larger", "large"])
async def test_secrets_are_redacted_in_shown_and_in_saved_content(bench: Bench, size: int):
    secret = "sk-0123456789abcdef"
    words = f"{'x' * 7}{secret}\n" * size
    prepared = await bench.given(text(words), structured={"key": secret, "n": 1}, redact=Redactor([secret]))
    everything = "".join(texts(prepared)) + "".join(saved.path.read_text() for saved in prepared.saved)

    assert secret not in everything
    assert "xxxxxxx[secret]" in everything
    assert '"key":"[secret]"' in everything


@pytest.mark.parametrize("size", [1, 200_000], ids=["small", "large"])
async def test_secrets_are_redacted_in_uris_and_in_content_saved_as_received(bench: Bench, size: int):
    secret = "sk-0123456789abcdef"
    prepared = await bench.given(
        {"type": "resource", "resource": {"uri": f"https://a/?key={secret}", "blob": "aGk="}},
        {"type": "hologram", "key": secret, "more": "x" * size},
        link(uri=f"https://a/?key={secret}"),
        redact=Redactor([secret]),
    )
    everything = "".join(texts(prepared)) + "".join(saved.path.read_text() for saved in prepared.saved)

    assert secret not in everything
    assert everything.count("?key=[secret]") == 2


@pytest.mark.requirement("CAL-6")
async def test_an_error_of_many_blocks_stays_readable(bench: Bench):
    prepared = await bench.given(*[text(f"reason {number}") for number in range(5000)], is_error=True)

    assert len(prepared.content) <= 3
    assert texts(prepared)[0].startswith("reason 0\nreason 1\n")


async def test_every_content_is_available_in_full(bench: Bench):
    raw = Raw(json.dumps({"content": [text(LONG), {"type": "hologram"}]}).encode())
    whole = await bench.preparer.prepare_whole(*read_large_now(raw))

    assert whole.content[0] == TextBlock(LONG)
    assert whole.saved == ()
