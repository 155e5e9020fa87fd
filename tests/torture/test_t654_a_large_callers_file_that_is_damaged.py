"""T654: a large callers file is damaged while the gateway runs. It is not parsed again with every check,
which would delay all requests; a corrected file applies at the next check."""

import json
from pathlib import Path

import pytest

from dragoman.gateway import callers_file
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings import GatewaySettings
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA, BOB

pytestmark = pytest.mark.requirement("GWY-3")

READ_SECONDS = 2.0


def text_of(**tokens: str) -> str:
    return json.dumps({"callers": {name: {"token": token} for name, token in tokens.items()}})


async def test_t654_a_damaged_file_is_read_rarely_and_a_corrected_one_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    now, reads = [1000.0], list[float]()

    def slowly(path: Path) -> GatewaySettings:
        reads.append(now[0])
        now[0] += READ_SECONDS
        return read_settings(path)

    monkeypatch.setattr(callers_file, "monotonic", lambda: now[0])
    monkeypatch.setattr(callers_file, "read_settings", slowly)
    path, reported = tmp_path / "gateway.json", list[str]()
    path.write_text(text_of(ada=ADA))
    path.chmod(0o600)
    watched = CallersFile(
        path,
        read_settings(path),
        lambda settings: with_token(fixed_tokens(settings.callers)),
        reported.append,
    )
    path.write_text(text_of(ada=ADA)[:-1])
    for _ in range(60):
        assert (await watched.identify([f"Bearer {ADA}"])).caller.id == "ada"
        now[0] += 2.0
    assert reads == [1000.0, 1102.0]
    assert len(reported) == 1

    path.write_text(text_of(bob=BOB))
    assert (await watched.identify([f"Bearer {BOB}"])).caller.id == "bob"
    assert len(reads) == 3
