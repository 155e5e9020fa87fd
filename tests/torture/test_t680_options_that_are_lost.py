"""T680: a misspelled option of a host, or a single string in place of a list, is an error: a prohibition in
it is not lost."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Host

pytestmark = pytest.mark.requirement("LIB-1")

MISSPELT: list[dict[str, Any]] = [
    {"rule": {"deny": ["mcp__box"]}},
    {"deny": ["mcp__box"]},
    {"permision_mode": "plan"},
    {"hook": []},
    {"Rules": {"deny": ["mcp__box"]}},
]
COLLECTIONS = ["roots", "only", "set_aside", "bearer_origins"]
FLAGS = ["ignore_broken_settings", "audit", "session_hooks"]


@pytest.mark.parametrize("option", MISSPELT, ids=str)
def test_t680_an_unknown_option_is_an_error(home: Path, option: dict[str, Any]):
    (name,) = option
    with pytest.raises(TypeError) as caught:
        Host({}, **option)
    assert str(caught.value) == f"Host() got an unexpected keyword argument {name!r}"
    with pytest.raises(TypeError):
        Host.configured(**option)


@pytest.mark.parametrize("name", COLLECTIONS)
def test_t680_a_single_string_is_not_read_as_a_list_of_letters(home: Path, name: str):
    options: dict[str, Any] = {name: "~/"}
    with pytest.raises(ConfigError) as caught:
        Host({}, **options)
    assert str(caught.value).splitlines()[0] == f"{name}: must be a list of strings"


async def test_t680_new_roots_as_a_single_string_are_an_error(home: Path):
    folders: Any = "~/"
    async with Host({}) as host:
        before = host.roots
        with pytest.raises(ConfigError) as caught:
            host.set_roots(folders)
        assert host.roots == before
    assert str(caught.value).splitlines()[0] == "roots: must be a list of folders"


@pytest.mark.parametrize("name", FLAGS)
@pytest.mark.parametrize("value", ["false", "0", 1])
def test_t680_a_text_is_not_accepted_as_a_boolean(home: Path, name: str, value: object):
    options: dict[str, Any] = {name: value}
    with pytest.raises(ConfigError) as caught:
        Host({}, **options)
    assert str(caught.value).splitlines()[0] == f"{name}: must be True or False"
