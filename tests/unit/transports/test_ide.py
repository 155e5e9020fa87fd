"""IDEs are found by lockfiles, which are believed only as far as they can be."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.transports import ide as ide_module
from dragoman.transports.ide import (
    LOCK_BYTES,
    LOCK_FILES,
    TOKEN_HEADER,
    Ide,
    IdeSearch,
    find_ides,
    search_ides,
)

SECRET = "s3cr3t-t0ken"


class Folder:
    """The folder of lockfiles, beside a folder to work in."""

    def __init__(self, home: Path) -> None:
        self.path = home / ".dragoman" / "ide"
        self.path.mkdir(parents=True, mode=0o700)
        self.work = home / "work"

    def lock(self, name: str = "12345.lock", *, mode: int = 0o600, **content: Any) -> Path:
        content = {"pid": os.getpid(), "workspaceFolders": [str(self.work)], "authToken": SECRET} | content
        return self.write(name, json.dumps(content).encode(), mode=mode)

    def write(self, name: str, content: bytes, *, mode: int = 0o600) -> Path:
        path = self.path / name
        path.write_bytes(content)
        path.chmod(mode)
        return path

    def search(self, cwd: Path | None = None, **environ: str) -> IdeSearch:
        return search_ides(self.path, cwd or self.work, environ)

    def only_reason(self) -> str:
        search = self.search()
        assert search.ides == ()
        ((left_out),) = search.left_out
        assert SECRET not in repr(search)
        return left_out.reason


@pytest.fixture
def folder(home: Path) -> Folder:
    return Folder(home)


@pytest.mark.requirement("TRN-7")
def test_a_lockfile_is_an_ide(folder: Folder):
    folder.lock(ideName="Code \x1b[31m", transport="ws")

    assert folder.search() == IdeSearch(
        (
            Ide(
                name="Code \\x1b[31m",
                port=12345,
                transport="ws",
                pid=os.getpid(),
                workspaces=(str(folder.work),),
                workspace=str(folder.work),
                token=SECRET,
            ),
        )
    )
    assert find_ides(folder.path, folder.work, {}) == list(folder.search().ides)


def test_the_other_field_names_are_read_too(folder: Folder):
    folder.write(
        "code.lock", json.dumps({"port": 7, "token": SECRET, "workspace": str(folder.work), "x": 1}).encode()
    )

    (found,) = folder.search().ides
    assert (found.port, found.token, found.workspace) == (7, SECRET, str(folder.work))
    assert (found.name, found.transport, found.pid) == ("IDE", "sse", None)


@pytest.mark.parametrize(
    ("transport", "kind", "url"),
    [
        ("ws", "ws-ide", "ws://127.0.0.1:12345"),
        ("sse", "sse-ide", "http://127.0.0.1:12345/sse"),
    ],
)
@pytest.mark.requirement("TRN-7")
def test_an_ide_is_reached_on_this_machine_with_its_token_in_a_header(
    folder: Folder, transport: str, kind: str, url: str
):
    folder.lock(transport=transport, host="evil.example", url="ws://evil.example")

    (found,) = folder.search().ides
    network = found.network()
    assert found.type == kind
    assert network.url == url
    assert network.headers == {TOKEN_HEADER: SECRET} == {"X-Claude-Code-Ide-Authorization": SECRET}
    assert network.proxy is None
    assert found.network("X-Other").headers == {"X-Other": SECRET}


def test_an_ide_without_a_token_gets_no_header(folder: Folder):
    folder.lock(authToken=None)

    (found,) = folder.search().ides
    assert found.network().headers == {}


@pytest.mark.requirement("TRN-7")
def test_the_token_is_never_shown(folder: Folder):
    folder.lock()

    (found,) = folder.search().ides
    for shown in (repr(found), str(found), f"{found}", repr(found.__rich_repr__()), repr(found.network())):
        assert SECRET not in shown


def ports(search: IdeSearch) -> list[int]:
    return [found.port for found in search.ides]


def test_the_longest_workspace_that_contains_the_folder_comes_first(folder: Folder):
    deep = folder.work / "a" / "b"
    deep.mkdir(parents=True)
    folder.lock("1.lock", workspaceFolders=["/"])
    folder.lock("2.lock", workspaceFolders=[str(folder.work / "a"), str(folder.work)])
    folder.lock("3.lock", workspaceFolders=[str(folder.work)])
    folder.lock("4.lock", workspaceFolders=[str(folder.work / "ab")])
    folder.lock("5.lock", workspaceFolders=[str(deep / "deeper")])

    search = folder.search(deep)
    assert ports(search) == [2, 3, 1, 4, 5]
    assert [found.workspace for found in search.ides][:4] == [
        str(folder.work / "a"),
        str(folder.work),
        "/",
        None,
    ]


@pytest.mark.parametrize("variable", ["DRAGOMAN_IDE_PORT", "CLAUDE_CODE_SSE_PORT"])
def test_the_ide_whose_terminal_this_is_comes_before_all(folder: Folder, variable: str):
    folder.lock("1.lock")
    folder.lock("2.lock", workspaceFolders=["/elsewhere"])

    assert ports(folder.search(**{variable: "2"})) == [2, 1]
    assert ports(folder.search(**{variable: "nonsense"})) == [1, 2]


@pytest.mark.parametrize("workspace", ["", "work", "../work", "~", ".", "/\0", "\ud800"])
def test_a_workspace_that_is_not_a_folder_contains_nothing(folder: Folder, workspace: str):
    folder.lock(workspaceFolders=[workspace])

    search = folder.search()
    assert [found.workspace for found in search.ides] in ([None], [])
    assert len(search.ides) + len(search.left_out) == 1


def test_a_workspace_named_through_a_link_is_the_same_folder(folder: Folder, home: Path):
    (home / "link").symlink_to(folder.work)
    folder.lock(workspaceFolders=[str(home / "link")])

    assert folder.search().ides[0].workspace == str(home / "link")


@pytest.mark.parametrize("pid", [0, -1, -(2**70), 2**22 + 1, 2**70])
def test_an_ide_whose_process_has_ended_is_left_out(folder: Folder, pid: int):
    folder.lock(pid=pid)

    assert folder.only_reason() in ("its process is gone", "its content is not that of a lockfile")


def test_a_pid_of_another_users_process_is_left_out(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    folder.lock(pid=4242)

    assert folder.only_reason() == "process 4242 belongs to another user"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
@pytest.mark.requirement("TRN-7")
def test_a_file_that_others_may_read_is_left_out(folder: Folder, mode: int):
    folder.lock(mode=mode)

    assert "others may read" in folder.only_reason()


def test_a_file_of_another_user_is_left_out(folder: Folder, monkeypatch: pytest.MonkeyPatch):
    path = folder.lock()
    real = os.fstat

    def of_another(descriptor: int) -> os.stat_result:
        status = list(real(descriptor))
        status[4] += 1
        return os.stat_result(status)

    monkeypatch.setattr(ide_module.os, "fstat", of_another)

    assert path.exists()
    assert folder.only_reason() == "it belongs to another user"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not json " + SECRET.encode(),
        b"[]",
        b"null",
        b'{"pid": "x"}',
        b'{"pid": true}',
        b'{"workspaceFolders": "x"}',
        b'{"transport": "carrier pigeon"}',
        b'{"authToken": 7}',
        b'{"authToken": "\xff"}',
        b"[" * 60_000,
    ],
)
def test_a_malformed_file_is_left_out(folder: Folder, content: bytes):
    folder.write("1.lock", content)

    assert folder.only_reason() == "its content is not that of a lockfile"


@pytest.mark.parametrize("token", ["", "a b", "a\r\nX: y", "a\n", "\x00", "é", "x" * 5000])
def test_a_token_that_cannot_be_sent_is_not_sent(folder: Folder, token: str):
    folder.lock(authToken=token)

    search = folder.search()
    if token:
        assert [each.reason for each in search.left_out] == ["its token cannot be sent in a header"]
    assert all(found.token is None for found in search.ides)


@pytest.mark.parametrize(
    ("name", "port", "reason"),
    [
        ("0.lock", None, "it gives no port"),
        ("65536.lock", None, "it gives no port"),
        ("123456.lock", None, "it gives no port"),
        ("-1.lock", None, "it gives no port"),
        ("1_0.lock", None, "it gives no port"),
        ("٣.lock", None, "it gives no port"),
        ("x.lock", 70000, "it gives no port"),
        ("1.lock", 2, "its name and its content give two ports"),
    ],
)
def test_a_file_without_a_clear_port_is_left_out(folder: Folder, name: str, port: int | None, reason: str):
    folder.lock(name, port=port)

    assert folder.only_reason() == reason


def test_a_file_that_is_too_large_is_left_out(folder: Folder):
    folder.write("1.lock", b" " * (LOCK_BYTES + 1))

    assert "larger" in folder.only_reason()


def test_a_file_that_is_not_regular_is_left_out_without_waiting(folder: Folder, home: Path):
    os.mkfifo(folder.path / "1.lock", 0o600)
    (folder.path / "2.lock").mkdir(mode=0o700)
    (folder.path / "3.lock").symlink_to(folder.lock("elsewhere"))
    (folder.path / "readme.txt").write_text("not a lockfile")

    search = folder.search()
    assert search.ides == ()
    assert [Path(each.file).name for each in search.left_out] == ["1.lock", "2.lock", "3.lock"]


def test_one_bad_file_does_not_hide_the_others(folder: Folder):
    folder.write("1.lock", b"broken")
    folder.lock("2.lock")

    search = folder.search()
    assert ports(search) == [2]
    assert len(search.left_out) == 1


def test_a_folder_that_everybody_may_write_is_ignored(folder: Folder):
    folder.lock()
    folder.path.chmod(0o775)
    assert len(folder.search().ides) == 1

    folder.path.chmod(0o777)
    assert folder.only_reason() == "every user may write into it"


def test_no_folder_means_no_ides(home: Path):
    assert search_ides(home / "nowhere", home, {}) == IdeSearch()
    (home / "file").write_text("")
    assert search_ides(home / "file" / "ide", home, {}) == IdeSearch()


def test_the_number_of_files_is_limited(folder: Folder):
    for number in range(LOCK_FILES + 2):
        folder.lock(f"{10_000 + number}.lock")

    search = folder.search()
    assert len(search.ides) == LOCK_FILES
    assert len(search.left_out) == 2
