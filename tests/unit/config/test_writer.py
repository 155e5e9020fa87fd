"""Changing files so that nothing is ever lost."""

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from dragoman import atomic_write, paths
from dragoman.config import writer
from dragoman.config.jsonc import set_value
from dragoman.config.writer import edit, edit_state
from dragoman.errors import ConfigFileError

FILE = Path("settings.json")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def add(path: Path, key: str, value: Any = 1, **options: Any) -> None:
    edit(path, lambda text: set_value(text, [key], value), **{"private": False, **options})


def refusal(path: Path = FILE, **options: Any) -> ConfigFileError:
    with pytest.raises(ConfigFileError) as caught:
        add(path, "new", **options)
    assert caught.value.hint
    return caught.value


# --- what is written ---


@pytest.mark.requirement("CFG-10")
def test_unknown_content_is_unchanged_including_its_order():
    before = '{\r\n\t"zeta": {"x":1},\r\n\t"alpha": [1,  2]\r\n}\r\n'
    FILE.write_bytes(before.encode())
    add(FILE, "new")
    assert FILE.read_bytes() == before.replace("2]", '2],\r\n\t"new": 1').encode()


def test_a_missing_file_is_created_with_its_folders():
    path = Path("one/two/settings.json")
    add(path, "new")
    assert path.read_text() == '{\n  "new": 1\n}\n'


def test_an_unchanged_text_is_not_written():
    FILE.write_text("{}")
    before = FILE.stat()
    edit(FILE, lambda text: text, private=False)
    assert FILE.stat().st_ino == before.st_ino
    edit(Path("absent.json"), lambda text: text, private=False)
    assert not Path("absent.json").exists()


def test_no_other_file_remains_in_the_folder():
    add(FILE, "new")
    add(FILE, "newer")
    assert os.listdir() == ["settings.json"]


def test_a_file_with_comments_is_not_changed():
    FILE.write_text("{} // mine")
    assert "comments are not allowed" in refusal().reason
    assert FILE.read_text() == "{} // mine"


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    "after", ["", "{", "[]", '{"a": 1, "a": 2}', '{"a": "\ud800"}', '{"a": "' + "x" * 9_000_000 + '"}']
)
def test_a_text_that_could_not_be_read_again_is_not_written(after: str):
    FILE.write_text('{"old": 1}')
    with pytest.raises(ConfigFileError, match="the change would make the file"):
        edit(FILE, lambda _: after, private=False)
    assert FILE.read_text() == '{"old": 1}'


def test_a_change_that_does_not_fit_the_file_is_reported_with_its_position():
    FILE.write_text('{\n  "mcpServers": []\n}')
    with pytest.raises(ConfigFileError) as caught:
        edit(FILE, lambda text: set_value(text, ["mcpServers", "a"], {}), private=False)
    assert (caught.value.line, caught.value.column) == (2, 17)
    assert caught.value.reason == '"mcpServers" is not an object'


def test_an_error_of_the_change_is_raised_and_releases_the_lock():
    def fail(_: str) -> str:
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            edit(FILE, fail, private=False)
    add(FILE, "new")


# --- where it is written ---


def test_a_symlink_is_followed_and_stays_a_symlink():
    Path("dotfiles").mkdir()
    target = Path("dotfiles/settings.json")
    target.write_text("{}")
    FILE.symlink_to(target)
    add(FILE, "new")
    assert FILE.is_symlink()
    assert json.loads(target.read_text()) == {"new": 1}


def test_a_symlink_to_a_missing_file_creates_that_file():
    FILE.symlink_to("elsewhere/real.json")
    add(FILE, "new")
    assert FILE.is_symlink()
    assert Path("elsewhere/real.json").exists()


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize("way", ["file", "dangling", "folder", "dots"])
def test_a_symlink_leading_outside_the_project_is_not_followed(home: Path, way: str):
    project = Path("project")
    project.mkdir()
    outside = home / "outside"
    outside.mkdir()
    victim = outside / "settings.json"
    if way != "dangling":
        victim.write_text("{}")
    if way == "folder":
        (project / ".dragoman").symlink_to(outside)
    elif way != "dots":
        (project / ".dragoman").mkdir()
        (project / ".dragoman/settings.json").symlink_to(victim)
    below = "../../outside" if way == "dots" else ".dragoman"
    error = refusal(project / below / "settings.json", boundary=project)
    assert "outside" in error.reason
    assert not victim.exists() or victim.read_text() == "{}"


def test_a_symlink_within_the_project_is_followed():
    Path("project/shared").mkdir(parents=True)
    Path("project/settings.json").symlink_to("shared/real.json")
    Path("project-link").symlink_to("project")
    add(Path("project-link/settings.json"), "new", boundary=Path("project-link"))
    assert Path("project/shared/real.json").exists()


def test_what_is_not_a_regular_file_is_refused_without_waiting():
    Path("folder").mkdir()
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    FILE.write_text("{}")
    for path in (Path("folder"), Path("pipe"), Path("loop"), Path("/dev/null"), FILE / "below", Path("a\0b")):
        refusal(path)
    assert Path("folder").is_dir()
    assert Path("pipe").is_fifo()
    assert Path("loop").is_symlink()
    assert not os.listdir("folder")


def test_a_large_file_is_refused():
    FILE.write_bytes(b" " * (8 * 1024**2 + 1))
    assert "larger than 8 MB" in refusal().reason
    assert FILE.stat().st_size == 8 * 1024**2 + 1


# --- permissions ---


def test_a_plain_file_keeps_its_mode_and_a_new_one_follows_the_umask():
    FILE.write_text("{}")
    FILE.chmod(0o664)
    old_umask = os.umask(0o027)
    try:
        add(FILE, "new")
        add(Path("other.json"), "new")
    finally:
        os.umask(old_umask)
    assert mode(FILE) == 0o664
    assert mode(Path("other.json")) == 0o640


def test_a_private_file_and_its_new_folders_are_readable_by_the_owner_only():
    path = Path("a/b/secrets.json")
    add(path, "new", private=True)
    assert [mode(each) for each in (path, path.parent, path.parent.parent)] == [0o600, 0o700, 0o700]


def test_a_private_files_mode_is_corrected_even_if_nothing_changes():
    FILE.write_text("{}")
    FILE.chmod(0o644)
    edit(FILE, lambda text: text, private=True)
    assert mode(FILE) == 0o600


def test_existing_folders_keep_their_mode():
    Path("shared").mkdir(mode=0o755)
    add(Path("shared/secrets.json"), "new", private=True)
    assert mode(Path("shared")) == 0o755


@pytest.mark.parametrize("special", ["home", "sticky"])
def test_the_mode_of_a_home_or_shared_folder_is_never_changed(
    home: Path, monkeypatch: pytest.MonkeyPatch, special: str
):
    folder = home if special == "home" else home / "shared"
    folder.mkdir(exist_ok=True)
    wanted = 0o755 if special == "home" else 0o1777
    folder.chmod(wanted)
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(folder))
    add(folder / "settings.json", "new", private=True)
    assert mode(folder) == wanted
    assert mode(folder / "settings.json") == 0o600


def test_a_read_only_file_is_not_changed(monkeypatch: pytest.MonkeyPatch):
    FILE.write_text("{}")
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    assert refusal().reason == "the file cannot be written: it is read-only"
    assert FILE.read_text() == "{}"


def test_a_file_keeps_its_owner(monkeypatch: pytest.MonkeyPatch):
    given_to: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "fchown", lambda _, user, group: given_to.append((user, group)))
    FILE.write_text("{}")
    add(FILE, "new")
    assert given_to == []
    real = os.fstat

    def as_someone_else(descriptor: int) -> os.stat_result:
        fields = list(real(descriptor))
        fields[4] += 1
        return os.stat_result(fields)

    monkeypatch.setattr(atomic_write.os, "fstat", as_someone_else)
    add(FILE, "newer")
    assert given_to == [(os.getuid(), FILE.stat().st_gid)]


# --- leftovers and locks ---


def test_temporary_files_of_ended_processes_are_removed_and_others_are_not():
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait(30)
    token = "0123456789ab"
    stale = [f".settings.json.{pid}.{token}.tmp" for pid in (dead.pid, os.getpid())]
    fresh = [
        f".settings.json.{os.getppid()}.{token}.tmp",
        f".other.json.{dead.pid}.{token}.tmp",
        f".settings.json.{dead.pid}.mine.tmp",
        f".settings.json.99999999999.{token}.tmp",
    ]
    for name in (*stale, *fresh):
        Path(name).touch()
    Path(f".settings.json.{dead.pid}.ffffffffffff.tmp").mkdir()
    add(FILE, "new")
    left = set(os.listdir())
    assert left.isdisjoint(stale)
    assert left >= set(fresh)


def test_a_symlink_in_place_of_the_temporary_file_is_not_followed(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    victim = home / "victim"
    victim.write_text("mine")
    monkeypatch.setattr(atomic_write.secrets, "token_hex", lambda _: "planted")
    Path(f".settings.json.{os.getpid()}.planted.tmp").symlink_to(victim)
    assert "exists" in refusal().reason
    assert victim.read_text() == "mine"


@pytest.mark.requirement("CFG-10")
def test_the_wait_for_a_lock_of_another_process_is_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "LOCK_WAIT_SECONDS", 0.05)
    inside, done = threading.Event(), threading.Event()

    def hold(text: str) -> str:
        inside.set()
        assert done.wait(30)
        return set_value(text, ["held"], 1)

    holder = threading.Thread(target=edit, args=(FILE, hold), kwargs={"private": False})
    holder.start()
    assert inside.wait(30)
    error = refusal()
    done.set()
    holder.join(30)
    assert "another process" in error.reason
    assert json.loads(FILE.read_text()) == {"held": 1}


def test_every_path_of_a_file_has_the_same_lock():
    FILE.write_text("{}")
    Path("link.json").symlink_to(FILE)
    add(FILE, "a")
    add(Path("link.json"), "b")
    add(Path("../work/settings.json"), "c")
    assert len(list((paths.state_dir() / "locks").iterdir())) == 1
    assert json.loads(FILE.read_text()) == {"a": 1, "b": 1, "c": 1}


def test_without_a_folder_for_locks_nothing_is_written(home: Path):
    (home / ".dragoman").write_text("in the way")
    folder = home / ".dragoman" / "state" / "locks"
    assert refusal().reason == f"its lock in {folder} cannot be used: Not a directory"
    assert not FILE.exists()


# --- state ---


def remember(state: dict[str, Any]) -> dict[str, Any]:
    return {**state, "new": 1}


@pytest.mark.requirement("CFG-10")
def test_state_is_read_and_written_as_a_dictionary_and_unknown_keys_stay():
    path = paths.state_dir() / "approvals.json"
    assert edit_state(path, remember) is None
    assert mode(path) == 0o600
    path.write_text('{"zeta": [1], "alpha": {"later": true}}')
    assert edit_state(path, remember) is None
    assert list(json.loads(path.read_text()).items()) == [
        ("zeta", [1]),
        ("alpha", {"later": True}),
        ("new", 1),
    ]


def test_unchanged_state_is_not_written_and_state_changed_in_place_is():
    path = paths.state_dir() / "approvals.json"
    edit_state(path, lambda state: state)
    assert not path.exists()
    edit_state(path, remember)
    before = path.stat().st_ino
    edit_state(path, lambda state: state)
    assert path.stat().st_ino == before

    def in_place(state: dict[str, Any]) -> dict[str, Any]:
        state["newer"] = 2
        return state

    edit_state(path, in_place)
    assert json.loads(path.read_text()) == {"new": 1, "newer": 2}


def test_state_that_could_not_be_written_or_read_again_is_refused():
    path = paths.state_dir() / "approvals.json"
    edit_state(path, remember)
    with pytest.raises(ValueError):
        edit_state(path, lambda _: {"a": float("nan")})
    path.unlink()
    path.mkdir()
    with pytest.raises(ConfigFileError):
        edit_state(path, remember)
    assert path.is_dir()
