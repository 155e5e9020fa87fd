"""What a model is given of a resource: text, images, and files for the rest."""

import base64
import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from dragoman.content import images
from dragoman.content.blocks import ImageBlock, ResourceData, TextBlock
from dragoman.content.images import LONGEST_SIDE, NotAnImage, fit, kind_of
from dragoman.content.media import IMAGE_LIMIT, PART_LIMIT, TEXT_LIMIT, Media
from dragoman.content.saving import Saver

pytestmark = pytest.mark.requirement("CAT-9")


def drawn(form: str, size: tuple[int, int] = (8, 6), mode: str = "RGB", **options: Any) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, size, 7 if mode in "LP" else None).save(buffer, form, **options)
    return buffer.getvalue()


def noisy(form: str, side: int) -> bytes:
    import os

    buffer = io.BytesIO()
    Image.frombytes("RGB", (side, side), os.urandom(side * side * 3)).save(buffer, form)
    return buffer.getvalue()


def seen(picture: images.Picture) -> Image.Image:
    image = Image.open(io.BytesIO(picture.data))
    assert f"image/{(image.format or '').lower()}" == picture.mime_type
    return image


# Images.


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP"])
def test_an_image_within_the_limits_is_unchanged(form: str):
    data = drawn(form)

    assert fit(data) == images.Picture(data, f"image/{form.lower()}")


@pytest.mark.parametrize(
    ("form", "mode"),
    [
        ("PNG", "RGB"),
        ("PNG", "RGBA"),
        ("PNG", "P"),
        ("PNG", "I;16"),
        ("JPEG", "RGB"),
        ("JPEG", "CMYK"),
        ("WEBP", "RGBA"),
        ("GIF", "P"),
    ],
)
def test_a_large_image_becomes_smaller_and_keeps_its_shape(form: str, mode: str):
    image = seen(fit(drawn(form, (4000, 1000), mode)))

    assert image.size == (LONGEST_SIDE, LONGEST_SIDE // 4)


def test_cmyk_images_and_animations_become_plain_images():
    assert seen(fit(drawn("JPEG", mode="CMYK"))).mode == "RGB"
    frames = [Image.new("RGB", (8, 6), colour) for colour in ("red", "blue")]
    for form in ("GIF", "WEBP", "PNG"):
        buffer = io.BytesIO()
        frames[0].save(buffer, form, save_all=True, append_images=frames[1:])
        picture = fit(buffer.getvalue())
        assert getattr(seen(picture), "n_frames", 1) == 1
        assert picture.mime_type == "image/png"


def test_a_rotated_photograph_is_upright_after_resizing():
    exif = Image.Exif()
    exif[0x0112] = 6
    image = seen(fit(drawn("JPEG", (4000, 1000), exif=exif)))

    assert image.size == (LONGEST_SIDE // 4, LONGEST_SIDE)


def test_an_image_with_too_many_bytes_is_reduced_to_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(images, "IMAGE_LIMIT_BYTES", 20_000)
    picture = fit(noisy("PNG", 300))

    assert len(picture.data) <= 20_000
    assert picture.mime_type == "image/jpeg"


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png_bomb(width: int, height: int) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(10**6))) + chunk(b"IEND", b"")


def webp_bomb() -> bytes:
    body = b"\x10\0\0\0" + (16_382).to_bytes(3, "little") + (16_382).to_bytes(3, "little")
    return b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0" + body + bytes(20)


@pytest.mark.parametrize(
    "data",
    [
        png_bomb(50_000, 50_000),
        png_bomb(10_000, 10_000),
        webp_bomb(),
        b"GIF89a\xff\xff\xff\xff\0\0\0,\0\0\0\0\xff\xff\xff\xff\0\x08\x02\x00\x00\x00;",
    ],
    ids=["png", "png that would only warn", "webp", "gif"],
)
def test_an_image_with_too_many_pixels_is_refused_before_decoding(data: bytes):
    with pytest.raises(NotAnImage, match="million pixels"):
        fit(data)


@pytest.mark.parametrize(
    "data",
    [b"", b"<svg/>", b"BM" + bytes(60), b"II*\0", b"%!PS-Adobe", b"\0\0\1\0", b"RIFF\0\0\0\0WAVE"],
    ids=["nothing", "svg", "bmp", "tiff", "postscript", "ico", "wav"],
)
def test_other_formats_are_not_images(data: bytes):
    assert kind_of(data) is None
    with pytest.raises(NotAnImage, match="no PNG"):
        fit(data)


@settings(max_examples=60)
@given(st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]), st.data())
def test_a_broken_image_is_reported_in_a_sentence_and_never_raises(form: str, data: st.DataObject):
    whole = bytearray(drawn(form, (20, 20)))
    for _ in range(data.draw(st.integers(1, 8))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    del whole[data.draw(st.integers(0, len(whole))) :]
    try:
        fit(bytes(whole))
    except NotAnImage:
        pass


# Resources.


@pytest.fixture
def media(tmp_path: Path) -> Media:
    return Media(Saver(tmp_path / "saved"))


def blob(data: bytes, mime_type: str | None = None, uri: str = "x:y") -> ResourceData:
    return ResourceData(uri, mime_type, blob=base64.b64encode(data).decode())


async def texts(media: Media, *parts: ResourceData) -> list[str]:
    return [block.as_text() for block in await media.shown(parts)]


async def test_text_is_cleaned(media: Media):
    assert await texts(media, ResourceData("x:y", text="a\u202eb\x1b[31mc\r\nd")) == ["abc\nd"]


async def test_text_is_cut_visibly_over_all_parts_together(media: Media):
    (only,) = await texts(media, ResourceData("x:y", text="a" * (TEXT_LIMIT + 50)))
    assert len(only) <= TEXT_LIMIT + 40
    assert re.search(r"\[\d+ more characters\]$", only)
    parts = [ResourceData(f"x:{n}", text=str(n) * 60_000) for n in range(4)]
    found = await texts(media, *parts)
    assert sum(map(len, found)) < TEXT_LIMIT + 500
    assert found[-1] == "[60000 more characters are not shown]"
    assert found[-2] == "[x:3]", "what is not shown is still named"


async def test_an_image_is_recognized_with_any_declared_type(media: Media):
    (block,) = await media.shown([blob(drawn("PNG"), "application/pdf")])

    assert isinstance(block, ImageBlock)
    assert block.mime_type == "image/png"


async def test_data_declared_as_an_image_that_is_not_one_is_saved(media: Media, tmp_path: Path):
    (text,) = await texts(media, blob(b"MZ not a picture", "image/png"))

    (saved,) = (tmp_path / "saved").iterdir()
    why = "it is no PNG, JPEG, GIF or WebP image"
    assert text == f"[x:y, declared as image/png: {why}; 16 bytes, saved as {saved}]"
    assert saved.suffix == ".bin"


async def test_a_broken_image_is_reported_and_saved(media: Media):
    (text,) = await texts(media, blob(drawn("PNG")[:40]))

    assert "the image cannot be read" in text
    assert "saved as" in text


@pytest.mark.parametrize("data", ["a", "!!!!", "AAAA=A", "ä", "AA==\x00"])
async def test_invalid_base64_is_reported_in_a_sentence(media: Media, data: str):
    assert await texts(media, ResourceData("x:y", blob=data)) == ["[x:y: its data is not valid base64]"]


async def test_line_breaks_in_base64_are_accepted(media: Media):
    data = base64.encodebytes(drawn("PNG", (60, 60))).decode()
    assert "\n" in data.strip()
    (block,) = await media.shown([ResourceData("x:y", blob=data)])
    assert isinstance(block, ImageBlock)


async def test_an_empty_result_is_reported_as_empty(media: Media):
    assert await texts(media) == ["[the resource is empty]"]
    assert await texts(media, blob(b"")) == ["[x:y: empty]"]


async def test_many_images_are_saved_after_the_first_few_and_many_parts_counted(media: Media):
    blocks = await media.shown([blob(drawn("PNG"))] * (IMAGE_LIMIT + 2))
    assert sum(isinstance(block, ImageBlock) for block in blocks) == IMAGE_LIMIT
    blocks = await media.shown([ResourceData("x:y", text="t")] * (PART_LIMIT + 3))
    assert blocks[-1] == TextBlock("[3 more parts are not shown]")


async def test_data_that_cannot_be_saved_is_reported_without_other_effects(tmp_path: Path):
    media = Media(Saver(tmp_path / "saved", quota_bytes=10))
    found = await texts(media, blob(b"x" * 11, uri="a:b"), ResourceData("c:d", text="still here"))

    assert found[1] == "[a:b: 11 bytes, not saved: it is larger than the limit of 10 bytes]"
    assert found[3] == "still here"


async def test_a_uri_or_type_contains_no_terminal_sequences(media: Media):
    (text,) = await texts(media, ResourceData("x:\x1b[2J\n", "a/b\u202e", blob="!"))

    assert text.isprintable()
    assert "\x1b" not in text
