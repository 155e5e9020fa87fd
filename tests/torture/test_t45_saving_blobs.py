"""T45: Saved data of a hostile server stays in its folder, is limited, gets our file names, and is never
opened."""

import base64
import os
import stat
from pathlib import Path

import pytest

from dragoman import paths
from dragoman.content.blocks import ImageBlock, ResourceData
from dragoman.content.media import Media
from dragoman.content.saving import NotSaved, Saver

pytestmark = pytest.mark.requirement("CAT-9")

LIES = [
    ("../../../.bashrc", "text/plain"),
    ("/etc/passwd", "../../x"),
    ("file:///%2e%2e/%2e%2e/a", "application/x-sh"),
    ("a\0b", "text/plain\0.sh"),
    ("x" * 5000, "image/png\r\nX: y"),
    ("~/.ssh/authorized_keys", "text/html"),
    ("CON", "application/x-msdownload"),
    ("\u202etxt.exe", "application/x-desktop"),
]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def everything_below(folder: Path) -> set[Path]:
    return {Path(root, name) for root, _, names in os.walk(folder) for name in names}


@pytest.mark.parametrize(("uri", "mime_type"), LIES, ids=lambda value: ascii(value)[:30])
async def test_t45_no_name_or_type_leads_outside_the_folder(home: Path, uri: str, mime_type: str):
    before = everything_below(home)
    (block,) = await Media().shown([ResourceData(uri, mime_type, blob=encoded(b"#!/bin/sh\nrm -rf ~\n"))])
    (made,) = everything_below(home) - before

    assert made.parent == paths.state_dir() / "saved"
    assert made.suffix in (".bin", ".txt")
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert block.as_text().isprintable()


async def test_t45_an_existing_file_or_symlink_is_never_written_to(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    saver = Saver()
    await saver.save(b"first")
    victim = home / "victim"
    victim.write_text("precious")
    monkeypatch.setattr("dragoman.content.saving.secrets.token_hex", lambda _: "0" * 16)
    name = (await saver.save(b"second")).name
    (saver.folder / name).unlink()
    (saver.folder / name).symlink_to(victim)
    monkeypatch.setattr("dragoman.content.saving.time.strftime", lambda *_: name[:15])

    with pytest.raises(NotSaved):
        await saver.save(b"third")
    assert victim.read_text() == "precious"


async def test_t45_an_svg_is_not_shown_and_its_file_name_is_not_opened_by_a_browser(home: Path):
    svg = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    for claim in ("image/svg+xml", "image/png", "text/html"):
        (block,) = await Media().shown([ResourceData("a.svg", claim, blob=encoded(svg))])
        assert not isinstance(block, ImageBlock)
    assert {path.suffix for path in everything_below(paths.state_dir() / "saved")} <= {".txt", ".bin"}


async def test_t45_a_flood_of_data_stops_at_the_quota(tmp_path: Path):
    media = Media(Saver(tmp_path / "saved", quota_bytes=100_000))
    blocks = await media.shown([ResourceData("x:y", blob=encoded(bytes(9_000)))] * 100)
    kept = sum(path.stat().st_size for path in everything_below(tmp_path))

    assert kept <= 100_000
    assert "full" in blocks[-1].as_text()


async def test_t45_no_program_is_started(home: Path, monkeypatch: pytest.MonkeyPatch):
    """Saving and showing never start another program."""
    started: list[object] = []
    for name in ("posix_spawn", "fork", "execv", "system"):
        monkeypatch.setattr(os, name, lambda *args, name=name: started.append(name))
    for data in (b"%PDF-1.7 /OpenAction", b"#!/bin/sh", b"\x7fELF", b"%!PS"):
        await Media().shown([ResourceData("x:y", "application/pdf", blob=encoded(data))])
    assert started == []


@pytest.mark.parametrize("data", ["%%%", "A", "=" * 1000, "A" * 10_001, "\ud83d"], ids=ascii)
async def test_t45_invalid_base64_is_an_error_message(home: Path, data: str):
    before = everything_below(home)
    (block,) = await Media().shown([ResourceData("x:y", blob=data)])

    assert "not valid base64" in block.as_text()
    assert everything_below(home) == before
