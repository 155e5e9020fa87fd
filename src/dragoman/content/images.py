"""Converts images from servers for model APIs. No I/O; slow, so it runs in a worker thread.

Accepts PNG, JPEG, GIF and WebP, recognised only by their first bytes, within the size limits of model APIs.
Pillow's decoders are called one by one, because its own detection would try every format it knows on a
server's bytes. An image with too many pixels is refused before it is decompressed.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:  # loaded when the first image comes
    from PIL.Image import Image

PIXEL_LIMIT: Final = 50_000_000
LONGEST_SIDE: Final = 1568
"""The longest edge in pixels. Model APIs scale larger images down after they were uploaded, so more bytes are
useless."""
IMAGE_LIMIT_BYTES: Final = 5 * 1024 * 1024 * 3 // 4
"""Five megabytes in base64: the limit of the strictest model API."""

PNG: Final = b"\x89PNG\r\n\x1a\n"
NO_IMAGE: Final = "it is no PNG, JPEG, GIF or WebP image"

_QUALITIES: Final = (85, 70, 50)


class NotAnImage(Exception):
    """The data cannot be used as an image; the text says why."""


class Picture(NamedTuple):
    data: bytes
    mime_type: str


def kind_of(data: bytes) -> str | None:
    """The kind of image by its first bytes: png, jpeg, gif or webp."""
    if data.startswith(PNG):
        return "png"
    if data.startswith(b"\xff\xd8\xff"):
        return "jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "gif"
    return "webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None


def fit(data: bytes) -> Picture:
    """The image within the limits: unchanged if it fits, otherwise smaller. `NotAnImage` if it is broken."""
    kind = kind_of(data)
    if kind is None:
        raise NotAnImage(NO_IMAGE)
    if kind == "png":
        data = _without_broken_extras(data)
    try:
        image = _opened(kind, data)
        fits = _fits(image, kind, len(data))
        if kind == "jpeg":
            image.draft(None, (LONGEST_SIDE, LONGEST_SIDE))  # a large one is decoded at a reduced size
        image.load()
        return Picture(data, f"image/{kind}") if fits else _smaller(image, kind)
    except NotAnImage:
        raise
    except Exception as error:  # border: a decoder's errors on bytes from a server
        raise NotAnImage(f"the image cannot be read ({type(error).__name__})") from None


def _without_broken_extras(data: bytes) -> bytes:
    """The PNG without its optional chunks, if one of them is broken. Decoders are stricter than browsers, so
    such images exist."""
    chunks: list[bytes] = []
    is_broken, place = False, len(PNG)
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        end = place + 12 + length
        kind, body = data[place + 4 : place + 8], data[place + 4 : end - 4]
        if end > len(data):
            return data  # cut off: decoding it reports that
        is_extra = kind[:1].islower() and kind != b"tRNS"
        is_broken = is_broken or (is_extra and zlib.crc32(body) != int.from_bytes(data[end - 4 : end], "big"))
        if not is_extra:
            chunks.append(data[place:end])
        place = end
    return PNG + b"".join(chunks) if is_broken else data


def _opened(kind: str, data: bytes) -> Image:
    if kind == "webp":
        _check_size(_webp_size(data))  # its decoder allocates the whole picture at once
    image = _decoder(kind)(io.BytesIO(data))
    _check_size(image.size)
    return image


def _fits(image: Image, kind: str, size_bytes: int) -> bool:
    """Whether model APIs accept the image unchanged: they take no animations and no CMYK colours."""
    is_plain = kind != "gif" and image.mode != "CMYK" and not getattr(image, "is_animated", False)
    return is_plain and max(image.size) <= LONGEST_SIDE and size_bytes <= IMAGE_LIMIT_BYTES


def _decoder(kind: str) -> Any:
    from PIL import GifImagePlugin, JpegImagePlugin, PngImagePlugin, WebPImagePlugin

    return {
        "png": PngImagePlugin.PngImageFile,
        "jpeg": JpegImagePlugin.JpegImageFile,
        "gif": GifImagePlugin.GifImageFile,
        "webp": WebPImagePlugin.WebPImageFile,
    }[kind]


def _check_size(size: tuple[int, int]) -> None:
    if size[0] * size[1] > PIXEL_LIMIT:
        raise NotAnImage(f"the image has more than {PIXEL_LIMIT // 1_000_000} million pixels")


def _webp_size(data: bytes) -> tuple[int, int]:
    """The size from the header, without decoding the image."""
    kind, body = data[12:16], data[20:30]
    if len(body) < 10:
        raise NotAnImage("the image is cut off")
    if kind == b"VP8X":
        return 1 + int.from_bytes(body[4:7], "little"), 1 + int.from_bytes(body[7:10], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(body[1:5], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    return int.from_bytes(body[6:8], "little") & 0x3FFF, int.from_bytes(body[8:10], "little") & 0x3FFF


def _smaller(image: Image, kind: str) -> Picture:
    from PIL import Image as pillow
    from PIL import ImageOps

    image = ImageOps.exif_transpose(image)
    if image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGBA" if image.has_transparency_data else "RGB")
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), pillow.Resampling.LANCZOS)
    while True:  # an image of one pixel always fits
        for picture in _spellings(image, kind):
            if len(picture.data) <= IMAGE_LIMIT_BYTES:
                return picture
        image.thumbnail((max(1, image.width // 2), max(1, image.height // 2)))


def _spellings(image: Image, kind: str) -> Iterator[Picture]:
    """The encoded forms of the image, in the order of preference."""
    from PIL import Image as pillow

    if kind != "jpeg" or image.mode == "RGBA":
        yield Picture(_encoded(image, "PNG"), "image/png")
    if image.mode == "RGBA":
        ground = pillow.new("RGB", image.size, "white")
        ground.paste(image, mask=image.getchannel("A"))
        image = ground
    for quality in _QUALITIES:
        yield Picture(_encoded(image, "JPEG", quality=quality), "image/jpeg")


def _encoded(image: Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()
