"""The n-th system call fails, for every n: the old file is intact."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dragoman import paths
from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state
from dragoman.errors import ConfigFileError
from tests.case_selection import some

CANARY = "c4nary"
OLD = f'{{"token": "{CANARY}"}}\n'
CORRUPT = f'{{"token": "{CANARY}'

CALLS = [
    *("access", "chmod", "close", "fchmod", "fchown", "fstat", "fsync", "kill", "link", "listdir", "lstat"),
    *("mkdir", "open", "read", "readlink", "rename", "replace", "stat", "unlink", "write"),
]


class Disk:
    """Counts the system calls, and fails from the n-th on, or only the n-th."""

    def __init__(self, fails_at: int = 0, number: int = 0, *, stays_broken: bool = False) -> None:
        self.count = 0
        self._fails_at = fails_at
        self._number = number
        self._stays_broken = stays_broken

    def wrap(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            is_hit = self.count == self._fails_at or (self._stays_broken and self.count > self._fails_at)
            if not (self._fails_at and is_hit):
                return real(*arguments, **options)
            if name == "close":  # a descriptor is closed even if closing it fails
                real(*arguments, **options)
            raise OSError(self._number, os.strerror(self._number), *arguments[:1])

        return wrapped

    @contextmanager
    def in_place(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in CALLS:
                patch.setattr(os, name, self.wrap(name, getattr(os, name)))
            yield


# --- the tested operations: each prepares a file and returns the change ---

Change = Callable[[], Any]


def set_new(text: str) -> str:
    return set_value(text, ["new"], CANARY)


def remember(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "new": CANARY}


def plain(path: Path) -> Change:
    path.write_text(OLD)
    return lambda: edit(path, set_new, private=False)


def private(path: Path) -> Change:
    path.write_text(OLD)
    path.chmod(0o644)
    path.parent.chmod(0o755)
    path.with_name(f".{path.name}.{os.getpid()}.0123456789ab.tmp").write_text(CANARY)
    return lambda: edit(path, set_new, private=True)


def linked(path: Path) -> Change:
    (path.parent / "real.json").write_text(OLD)
    path.symlink_to("real.json")
    return lambda: edit(path, set_new, private=False, boundary=path.parent)


def state(path: Path) -> Change:
    path.write_text(OLD)
    return lambda: edit_state(path, remember)


def corrupt_state(path: Path) -> Change:
    path.write_text(CORRUPT)
    return lambda: edit_state(path, remember)


TRIALS = [plain, private, linked, state, corrupt_state]
ERRORS = [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO]


numbers = count(1)


def _name(part: Callable[[Path], Change] | int) -> str:
    return errno.errorcode[part] if isinstance(part, int) else part.__name__


def fresh(trial: Callable[[Path], Change]) -> tuple[Path, Change]:
    """A file of its own in Dragoman's folder, so that nothing is left over from the previous run."""
    folder = paths.config_dir() / f"try-{next(numbers)}"
    folder.mkdir(parents=True)
    path = folder / "file.json"
    return path, trial(path)


def attempt(change: Change, disk: Disk) -> ConfigFileError | None:
    with disk.in_place():
        try:
            change()
        except ConfigFileError as error:
            return error
    return None


def calls_of(trial: Callable[[Path], Change]) -> int:
    _, change = fresh(trial)
    disk = Disk()
    assert attempt(change, disk) is None
    return disk.count


def check_content(path: Path, error: ConfigFileError | None) -> None:
    """Old after an error, new after a success."""
    if error is None:
        assert json.loads(path.read_text())["new"] == CANARY
    else:
        assert path.read_text() in (OLD, CORRUPT)


def check_kept(path: Path, error: ConfigFileError | None, trial: Callable[[Path], Change]) -> None:
    """An unreadable file is moved to a backup once, if it was replaced."""
    kept = [each.read_text() for each in path.parent.glob("*.corrupt-*")]
    assert kept == ([CORRUPT] if trial is corrupt_state and not error else [])


def check_error(error: ConfigFileError, path: Path) -> None:
    assert CANARY not in f"{error} {error.hint} {error.__cause__}"
    assert error.file == str(path) or Path(error.file) == path.resolve()
    assert error.hint


def temporary_files(path: Path) -> list[str]:
    return [name for name in os.listdir(path.parent) if name.endswith(".tmp")]


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("trial", "number"), some(TRIALS, ERRORS, each=2), ids=_name)
def test_t72_one_failed_system_call_leaves_the_old_file_and_no_other(
    trial: Callable[[Path], Change], number: int
):
    descriptors = len(os.listdir("/dev/fd"))
    failures = 0
    for n in range(1, calls_of(trial) + 1):
        path, change = fresh(trial)
        before = temporary_files(path)
        error = attempt(change, Disk(n, number))
        check_content(path, error)
        check_kept(path, error, trial)
        assert path.is_symlink() == (trial is linked)
        assert temporary_files(path) in ([], before)
        if error:
            failures += 1
            check_error(error, path)
    assert failures > 10
    assert len(os.listdir("/dev/fd")) == descriptors


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("trial", "number"), some(TRIALS, ERRORS, each=2), ids=_name)
def test_t72_a_disk_that_keeps_failing_loses_nothing_and_writing_works_again_after_it_recovers(
    trial: Callable[[Path], Change], number: int
):
    for n in range(1, calls_of(trial) + 1):
        path, change = fresh(trial)
        error = attempt(change, Disk(n, number, stays_broken=True))
        check_content(path, error)
        if error:
            check_error(error, path)
            change()
        assert json.loads(path.read_text())["new"] == CANARY
        assert temporary_files(path) == []
