"""T282: the callers file of a gateway is replaced by a file that cannot be read to its end."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.gateway import callers_file
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA

pytestmark = [pytest.mark.requirement("GWY-3"), pytest.mark.timeout(20)]
MAKE: dict[str, Callable[[Path], None]] = {
    "a pipe": lambda path: os.mkfifo(path, 0o600),
    "a link to a device": lambda path: path.symlink_to("/dev/ptmx"),
}


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
async def test_t282_requests_are_answered_and_the_previous_callers_remain(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(callers_file, "CHECK_SECONDS", 0.0)
    path, reported = tmp_path / "gateway.json", list[str]()
    path.write_text(json.dumps({"callers": {"ada": {"token": ADA}}}))
    path.chmod(0o600)
    watched = CallersFile(
        path,
        read_settings(path),
        lambda settings: with_token(fixed_tokens(settings.callers)),
        reported.append,
    )
    path.unlink()
    make(path)
    assert (await watched.identify([f"Bearer {ADA}"])).caller.id == "ada"
    text = f"{path}: it is not a regular file; the callers before the change stay in effect"
    assert reported == [text]
