"""T491: a gateway's file contains a lone surrogate as an escape. The file is refused with a readable error
at the start; in a running gateway the previous callers remain, and the error is reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigFileError
from dragoman.gateway import callers_file
from dragoman.gateway.access import fixed_tokens, with_token
from dragoman.gateway.callers_file import CallersFile
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA, BOB

pytestmark = pytest.mark.requirement("GWY-3")
CAUSE = "it contains a lone surrogate: an escape from \\ud800 to \\udfff without its other half"
HALVES: dict[str, dict[str, Any]] = {
    "token": {"callers": {"ada": {"token": ADA}, "eve": {"token": "\ud83d" * 20}}},
    "name": {"callers": {"ada\udc00": {"token": ADA}}},
    "server": {"callers": {"ada": {"token": ADA, "servers": ["x\ud83d"]}}},
    "tool": {"callers": {"ada": {"token": ADA}}, "views": {"v": {"rename": {"a": "b\ud83d"}}}},
    "argument": {"callers": {"ada": {"token": ADA}}, "views": {"v": {"arguments": {"a": {"b": "\ud83d"}}}}},
}


def write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document))
    path.chmod(0o600)


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_t491_the_file_is_refused_with_a_readable_error(
    half: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(callers_file, "CHECK_SECONDS", 0.0)
    path, reported = tmp_path / "gateway.json", list[str]()
    write(path, {"callers": {"ada": {"token": ADA}, "bob": {"token": BOB}}})
    watched = CallersFile(
        path,
        read_settings(path),
        lambda settings: with_token(fixed_tokens(settings.callers)),
        reported.append,
    )

    write(path, half)

    with pytest.raises(ConfigFileError) as refused:
        read_settings(path)
    assert str(refused.value) == f"{path}: {CAUSE}"
    for token, name in ((ADA, "ada"), (BOB, "bob")):
        assert (await watched.identify([f"Bearer {token}"])).caller.id == name
    assert reported == [f"{path}: {CAUSE}; the callers before the change stay in effect"]


async def test_t491_an_escaped_surrogate_pair_is_accepted(tmp_path: Path):
    path = tmp_path / "gateway.json"
    write(path, {"callers": {"ada 😀": {"token": ADA}}})  # `dumps` writes two escapes
    known = await with_token(fixed_tokens(read_settings(path).callers))([f"Bearer {ADA}"])
    assert known.caller.id == "ada 😀"
