"""T122: files of a result replace nothing and follow no symlink, except the path that the person named."""

import base64
from pathlib import Path

from dragoman.calls.outcome import CallOutcome
from dragoman.cli.render.text import write_files
from dragoman.content.blocks import ImageBlock
from tests.e2e.forked import run

DEMO = ("--mcp-config", "demo", "--strict-mcp-config")


def test_t122_a_symlink_in_the_folder_is_not_followed(home: Path):
    work, victim = home / "work", home / "profile"
    victim.write_text("mine")
    (work / "image.png").symlink_to(victim)
    (work / "image-2.png").symlink_to(home / "not-there")
    (work / "image-3.png").write_text("mine, too")

    done = run("call", "picture", *DEMO, "-o", ".", cwd=work)

    assert done.returncode == 0, done.stderr
    assert victim.read_text() == "mine"
    assert not (home / "not-there").exists()
    assert (work / "image-3.png").read_text() == "mine, too"
    assert (work / "image-4.png").read_bytes().startswith(b"\x89PNG")


def test_t122_further_parts_do_not_overwrite_existing_files(home: Path):
    (home / "p.png").write_bytes(b"old")
    (home / "p-2.png").write_bytes(b"mine")

    parts = [base64.b64encode(data).decode() for data in (b"one", b"two")]
    blocks = tuple(ImageBlock(data=data, mime_type="image/png") for data in parts)
    write_files(CallOutcome(server="s", tool="t", content=blocks), home / "p.png")

    assert (home / "p.png").read_bytes() == b"one"
    assert (home / "p-2.png").read_bytes() == b"mine"
    assert (home / "p-3.png").read_bytes() == b"two"
