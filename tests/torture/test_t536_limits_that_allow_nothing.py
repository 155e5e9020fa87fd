"""T536: a call limit in a gateway's file that no call could satisfy is refused with a readable error.
Otherwise each call would be asked to wait for a minute, again and again."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigFileError
from dragoman.gateway.settings_file import read_settings
from tests.gateway import ADA

pytestmark = pytest.mark.requirement("GWY-3")
OAUTH = {"issuer": "https://login.example", "audience": "https://tools.example/mcp"}


def of_caller(calls: int) -> dict[str, Any]:
    return {"callers": {"ada": {"token": ADA, "callsPerMinute": calls}}}


def of_oauth(calls: int) -> dict[str, Any]:
    return {"oauth": {**OAUTH, "callsPerMinute": calls}}


@pytest.mark.parametrize("calls", [0, -1, 1])
@pytest.mark.parametrize(("file_with", "whose"), [(of_caller, "caller 'ada'"), (of_oauth, "oauth")])
def test_t536_the_error_names_the_limit_that_allows_no_call(
    tmp_path: Path, file_with: Any, whose: str, calls: int
):
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps(file_with(calls)))
    path.chmod(0o600)
    if calls > 0:
        assert read_settings(path)
        return
    with pytest.raises(ConfigFileError) as caught:
        read_settings(path)
    assert str(caught.value) == f"{path}: callsPerMinute of {whose} is less than 1"
    assert caught.value.hint == "Leave it out for no limit."
