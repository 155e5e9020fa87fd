"""T73: Private files are readable by their owner only, for any umask and any earlier mode."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import paths
from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


@pytest.fixture(params=["absent", "open"])
def folder(request: pytest.FixtureRequest, umask: int) -> Path:
    """Dragoman's folder: missing, or readable by all, with everything in it."""
    top = paths.config_dir()
    if request.param == "open":
        (top / "state" / "locks").mkdir(parents=True)
        for name in ("settings.json", "state/approvals.json", "state/corrupt.json"):
            (top / name).write_text("{" if "corrupt" in name else "{}")
        for each in (top, *top.rglob("*")):
            each.chmod(0o755 if each.is_dir() else 0o644)
    return top


def modes_under(top: Path) -> dict[str, int]:
    return {
        str(each.relative_to(top.parent)): stat.S_IMODE(each.lstat().st_mode)
        for each in (top, *top.rglob("*"))
    }


def write_everything(top: Path) -> None:
    edit(top / "settings.json", lambda text: set_value(text, ["token"], "x"), private=True)
    for name in ("approvals.json", "corrupt.json"):
        edit_state(top / "state" / name, lambda state: {**state, "token": "x"})


def wrong_modes(top: Path) -> dict[str, str]:
    modes = modes_under(top)
    return {
        name: oct(mode)
        for name, mode in modes.items()
        if mode != (0o700 if (top.parent / name).is_dir() else 0o600)
    }


@pytest.mark.requirement("CFG-10")
def test_t73_files_folders_locks_and_backups_are_private(folder: Path):
    write_everything(folder)

    assert wrong_modes(folder) == {}
    assert len(list((folder / "state" / "locks").iterdir())) == 3


@pytest.mark.requirement("CFG-10")
def test_t73_a_lock_file_readable_by_others_is_made_private(umask: int):
    write_everything(paths.config_dir())
    for lock in (paths.state_dir() / "locks").iterdir():
        lock.chmod(0o666)

    write_everything(paths.config_dir())

    assert wrong_modes(paths.config_dir()) == {}


@pytest.mark.requirement("CFG-10")
def test_t73_the_content_is_never_readable_by_others_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch):
    seen: list[int] = []
    real_write, real_replace = os.write, os.replace

    def write(descriptor: int, data: memoryview) -> int:
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        return real_write(descriptor, data)

    def replace(source: Path, target: Path) -> None:
        if str(source).endswith(".tmp"):
            seen.append(stat.S_IMODE(os.stat(source).st_mode))
        real_replace(source, target)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "replace", replace)
    write_everything(folder)

    assert len(seen) >= 6
    assert set(seen) == {0o600}


@pytest.mark.requirement("CFG-10")
def test_t73_a_project_file_keeps_its_mode_or_gets_the_default_of_the_umask(umask: int):
    shared, new = Path("shared.json"), Path("folder/new.json")
    shared.write_text("{}")
    shared.chmod(0o644)
    for path in (shared, new):
        edit(path, lambda text: set_value(text, ["a"], 1), private=False)

    assert stat.S_IMODE(shared.stat().st_mode) == 0o644
    assert stat.S_IMODE(new.stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE(new.parent.stat().st_mode) == 0o777 & ~umask
