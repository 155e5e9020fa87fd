"""T852: a program writes the file of a gateway and leaves `null` where a list was meant. A caller with
`"tools": null` could use every tool. That is an error."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.settings_file import read_settings

pytestmark = pytest.mark.requirement("GWY-3")
ADA = {"token": "0123456789abcdefghij"}
OAUTH = {"issuer": "https://login.example.com", "audience": "https://tools.example.com/mcp"}


def written(folder: Path, document: Any) -> Path:
    path = folder / "gateway.json"
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"callers": {"ada": {**ADA, "tools": None}}}, "caller 'ada': \"tools\""),
        ({"callers": {"ada": {**ADA, "servers": None}}}, "caller 'ada': \"servers\""),
        ({"callers": {"ada": {**ADA, "views": None}}}, "caller 'ada': \"views\""),
        ({"oauth": {**OAUTH, "scopes": {"s": {"tools": None}}}}, "scope 's': \"tools\""),
        ({"callers": {"ada": ADA}, "views": {"v": {"tools": None}}}, "view 'v': \"tools\""),
    ],
)
def test_t852_the_file_is_not_used(tmp_path: Path, document: Any, place: str):
    path = written(tmp_path, document)
    with pytest.raises(ConfigError) as raised:
        read_settings(path)
    reason = f"{path}: {place} is null: write [] for none, or leave the key out for all"
    assert str(raised.value).splitlines()[0] == reason


def test_t852_an_empty_list_means_none(tmp_path: Path):
    settings = read_settings(written(tmp_path, {"callers": {"ada": {**ADA, "tools": []}}}))
    assert not settings.callers["ada"].offers_tool("box", "box__echo")
