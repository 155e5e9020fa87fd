"""T74: Files that cannot be parsed.

A person's file is refused and not changed; a state file is moved to a backup."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import paths
from dragoman.config.file_reading import LIMIT_BYTES
from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state
from dragoman.errors import ConfigFileError

CANARY = "c4nary"
WHOLE = json.dumps({"mcpServers": {"a": {"env": {"T": CANARY}}}}, indent=2).encode()

CORRUPT: dict[str, bytes] = {
    "empty": b"",
    "blank": b" \n\n",
    "nuls": bytes(4096),
    "nuls at the end": WHOLE + bytes(512),
    "half": WHOLE[: len(WHOLE) // 2],
    "one brace short": WHOLE[:-1],
    "written twice": WHOLE + WHOLE,
    "a longer one's tail": WHOLE + WHOLE[-9:],
    "a list": b"[" + WHOLE + b"]",
    "a string": json.dumps(CANARY).encode(),
    "null": b"null",
    "twice the key": b'{"a": "c4nary", "a": 1}',
    "not UTF-8": WHOLE.replace(b"c4", b"\xff\xfe"),
    "UTF-16": WHOLE.decode().encode("utf-16"),
    "compressed": b"\x1f\x8b\x08\x00" + WHOLE,
    "too deep": b'{"a":' * 50_000,
    "too large": b'{"a": "' + b"x" * LIMIT_BYTES + b'"}',
    "merge conflict": b"<<<<<<< HEAD\n" + WHOLE + b"\n=======\n{}\n>>>>>>> theirs\n",
}


def every_cut() -> list[bytes]:
    return [WHOLE[:length] for length in range(len(WHOLE))]


def set_new(text: str) -> str:
    return set_value(text, ["new"], 1)


def remember(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "new": 1}


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("what", CORRUPT)
def test_t74_a_persons_file_is_refused_and_not_changed(what: str, private: bool):
    path = Path("settings.json")
    path.write_bytes(CORRUPT[what])
    before = path.stat()

    with pytest.raises(ConfigFileError) as caught:
        edit(path, set_new, private=private)

    assert path.read_bytes() == CORRUPT[what]
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert caught.value.file == "settings.json"
    assert caught.value.hint
    assert caught.value.line is not None or what == "too large"
    assert CANARY not in f"{caught.value} {caught.value.hint}"
    assert len(str(caught.value)) < 300


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("what", CORRUPT)
def test_t74_a_corrupt_state_file_is_moved_to_a_backup_and_replaced(what: str):
    path = paths.state_dir() / "approvals.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(CORRUPT[what])

    aside = edit_state(path, remember)

    assert aside == path.with_name("approvals.json.corrupt-1")
    assert aside.read_bytes() == CORRUPT[what]
    assert json.loads(path.read_text()) == {"new": 1}
    assert edit_state(path, lambda state: {**state, "newer": 2}) is None
    assert json.loads(path.read_text()) == {"new": 1, "newer": 2}


@pytest.mark.requirement("CFG-10")
def test_t74_corrupt_state_is_replaced_even_if_there_is_nothing_to_store():
    path = paths.state_dir() / "approvals.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(WHOLE[:-1])

    assert edit_state(path, lambda state: state) is not None
    assert edit_state(path, lambda state: state) is None
    assert json.loads(path.read_text()) == {}


@pytest.mark.requirement("CFG-10")
def test_t74_if_the_new_state_cannot_be_computed_the_corrupt_file_is_not_moved():
    path = paths.state_dir() / "approvals.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(WHOLE[:-1])

    def fail(_: dict[str, Any]) -> dict[str, Any]:
        raise LookupError

    with pytest.raises(LookupError):
        edit_state(path, fail)
    assert path.read_bytes() == WHOLE[:-1]
    assert sorted(each.name for each in path.parent.iterdir()) == ["approvals.json", "locks"]


@pytest.mark.requirement("CFG-10")
def test_t74_no_backup_is_ever_overwritten():
    path = paths.state_dir() / "approvals.json"
    path.parent.mkdir(parents=True)
    kept: dict[Path, bytes] = {}
    for content in every_cut()[:20]:
        path.write_bytes(content)
        aside = edit_state(path, remember)
        assert aside is not None
        assert aside not in kept
        kept[aside] = content
    assert {aside: aside.read_bytes() for aside in kept} == kept


@pytest.mark.requirement("CFG-10")
def test_t74_a_file_truncated_at_any_point_is_refused():
    path = Path("settings.json")
    for content in every_cut():
        path.write_bytes(content)
        with pytest.raises(ConfigFileError) as caught:
            edit(path, set_new, private=False)
        assert path.read_bytes() == content
        assert caught.value.line is not None
        assert CANARY not in str(caught.value)


@pytest.mark.requirement("CFG-10")
def test_t74_a_corrupt_file_does_not_affect_the_others():
    broken, whole = Path("broken.json"), Path("whole.json")
    broken.write_text("{")
    with pytest.raises(ConfigFileError):
        edit(broken, set_new, private=False)
    edit(whole, set_new, private=False)
    assert json.loads(whole.read_text()) == {"new": 1}
