"""T197: a file that a rule about Read denies, or asks about, is not shown by a search."""

import contextlib
import os
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.builtin.find import matches_in, readable

pytestmark = pytest.mark.requirement("AGT-3")
KEY = "KEY=canary"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("keys.txt", "sub/keys.txt", "plain.txt", "keys\nplain.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"before\n{KEY} {name!r}\nafter\n")
    os.link(tmp_path / "sub/keys.txt", tmp_path / "sub/KEYS.TXT")
    return tmp_path


async def found(folder: Path, behaviour: str, **arguments: object) -> str:
    rules = {behaviour: ["Read(file_path=*/keys*)"]}
    async with Host({}, rules=rules) as host, open_agent_tools(host, Folders(folder)) as agent_tools:
        with contextlib.chdir(folder):
            return (await agent_tools.toolbox.call("Grep", {"pattern": "KEY", **arguments})).text


@pytest.mark.parametrize("behaviour", ["deny", "ask"])
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({}, f"plain.txt:2:{KEY} 'plain.txt'\n"),
        ({"context": 1}, f"plain.txt-1-before\nplain.txt:2:{KEY} 'plain.txt'\nplain.txt-3-after\n"),
        ({"output": "files"}, "plain.txt\n"),
        ({"output": "count"}, "plain.txt:1\n"),
    ],
)
async def test_t197_a_search_leaves_out_denied_files(
    folder: Path, behaviour: str, arguments: dict[str, object], shown: str
):
    note = "(4 files left out because of a rule about Read.)"
    assert await found(folder, behaviour, **arguments) == shown + note


@pytest.mark.parametrize("path", ["keys.txt", "sub", "sub/../keys.txt", "link.txt"])
async def test_t197_a_search_of_the_denied_file_itself_shows_nothing(folder: Path, path: str):
    (folder / "link.txt").symlink_to("keys.txt")
    assert "canary" not in await found(folder, "deny", path=str(folder / path))


async def test_t197_without_such_a_rule_nothing_is_left_out(folder: Path):
    text = await found(folder, "allow", output="files", path=str(folder / "sub"))
    assert sorted(text.splitlines()) == ["KEYS.TXT", "keys.txt"]


def test_t197_a_name_with_a_line_break_is_checked_as_one_name():
    text = "a\nb\0" + "1:one\n--\nb\0" + "1:two\nb\0" + "2-three\nnot fin"
    seen: list[str] = []

    def may_read(name: str) -> bool:
        seen.append(name)
        return name == "b"

    assert readable(matches_in(text), may_read) == (["b:1:two", "b-2-three"], 1)
    assert seen == ["a\nb", "b"]
