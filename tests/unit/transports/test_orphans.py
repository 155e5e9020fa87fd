"""The pid_file of started processes: what is read from it, and which processes may be touched."""

import os
import signal
from pathlib import Path

import pytest

from dragoman.processes import ProcessFacts, group_members, read_process
from dragoman.transports import orphans
from dragoman.transports.orphans import _host_is_alive, _is_ours, _leftovers, _place, pid_file_dir, sweep

ME = os.getpid()
BOOT = f"boot {_place()}\n"


def facts(pid: int, *, started: int, group: int | None = None) -> ProcessFacts:
    leader = pid if group is None else group
    return ProcessFacts(pid=pid, state="S", parent=1, group=leader, session=leader, started=started)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param(BOOT + "+ 10 500\n", {10: 500}, id="one started"),
        pytest.param(BOOT + "+ 10 500\n- 10\n", {}, id="started and gone"),
        pytest.param(BOOT + "+ 10 500\n+ 11 501\n- 10\n", {11: 501}, id="one of two gone"),
        pytest.param(BOOT + "+ 10 500\n- 10\n+ 10 900\n", {10: 900}, id="a pid used again"),
        pytest.param(BOOT + "- 10\n", {}, id="gone but never started"),
        pytest.param("boot of-another-time\n+ 10 500\n", {}, id="another boot"),
        pytest.param(BOOT + "+ 10 500\n+ 11 5", {10: 500, 11: 5}, id="cut off in a number"),
        pytest.param(BOOT + "+ 10 500\n+ 11", {10: 500}, id="cut off in a line"),
        pytest.param(BOOT + "+ ten 500\n+ 10 -5\n+ -1 5\nrubbish\n+ 12 1 extra\n", {}, id="rubbish"),
        pytest.param(BOOT + "+ ² 500\n+ 10 ²\n", {}, id="digits that are no numbers"),
    ],
)
def test_a_pid_file_is_read_as_processes_to_end(text: str, left: dict[int, int]):
    assert dict(_leftovers(text)) == left


def test_the_facts_of_this_process_are_read():
    me = read_process(ME)

    assert me is not None
    assert (me.pid, me.group, me.session) == (ME, os.getpgid(0), os.getsid(0))
    assert me.state in "RSD"
    assert me.started > 0


def test_a_process_that_does_not_exist_has_no_facts():
    assert read_process(2**22 + 1) is None


@pytest.mark.parametrize("name", ["plain", "with ) paren", "R 1 2 3 (", ") Z 9 9 ("])
def test_a_programs_name_cannot_forge_its_facts(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    stat = tmp_path / "stat"
    stat.write_text(f"77 ({name}) S 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0\n")
    monkeypatch.setattr("builtins.open", lambda *_, real=open: real(stat, "rb"))

    assert read_process(77) == facts(77, started=4242)


def test_a_pid_with_another_start_time_is_another_process(monkeypatch: pytest.MonkeyPatch):
    leader = facts(77, started=500)
    monkeypatch.setattr(orphans, "read_process", lambda pid: leader)

    assert _is_ours(77, 500)
    assert not _is_ours(77, 499)
    assert not _is_ours(77, 0)


def test_a_process_that_is_not_a_group_leader_is_another_process(monkeypatch: pytest.MonkeyPatch):
    member = facts(77, started=500, group=12)
    monkeypatch.setattr(orphans, "read_process", lambda pid: member)

    assert not _is_ours(77, 500)


@pytest.mark.parametrize("pid", [0, 1])
def test_the_pids_that_mean_all_processes_are_never_accepted(pid: int):
    # killpg(0) is our own group, and in a container foreign processes seem to belong to group 0.
    assert not _is_ours(pid, 0)


def test_the_members_of_the_hosts_own_group_are_found_only_if_it_is_a_session():
    found = group_members(os.getsid(0))

    assert all(os.getsid(pid) == os.getsid(0) for pid in found)
    assert group_members(2**22 + 1) == []


def pid_file(name: str, text: str | bytes) -> Path:
    pid_file_dir().mkdir(parents=True, exist_ok=True)
    path = pid_file_dir() / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Instead of ending process groups, notes which would have been."""
    groups: list[int] = []

    def note(group: int, number: int) -> None:
        assert number == signal.SIGKILL
        groups.append(group)

    monkeypatch.setattr(os, "killpg", note)
    return groups


DEAD_HOST = f"{2**22 + 1}-1"


def test_a_pid_registry_is_named_after_a_host_and_its_start_time():
    me = read_process(ME)
    assert me is not None

    assert _host_is_alive(f"{ME}-{me.started}")
    assert not _host_is_alive(f"{ME}-{me.started + 1}")
    assert not _host_is_alive(DEAD_HOST)


@pytest.mark.parametrize("name", ["notes.txt", "12", "-", "12-", "-12", "1-2-3", ".tmp", "²-3"])
def test_a_file_that_is_not_a_pid_registry_is_not_touched(name: str, killed: list[int]):
    path = pid_file(name, BOOT + f"+ {ME} 1\n")

    assert sweep() == []
    assert path.exists()


def test_without_a_pid_registry_no_process_is_ended():
    assert sweep() == []


def test_only_processes_that_are_still_the_listed_ones_are_ended(
    killed: list[int], monkeypatch: pytest.MonkeyPatch
):
    alive = {
        70: facts(70, started=500),
        71: facts(71, started=999),  # the pid was given to another program
        72: facts(72, started=502),
    }
    monkeypatch.setattr(orphans, "read_process", alive.get)
    monkeypatch.setattr(orphans, "group_members", lambda group, since=0: [])
    path = pid_file(DEAD_HOST, BOOT + "+ 70 500\n+ 71 501\n+ 72 502\n- 72\n+ 73 503\n")

    assert sweep() == killed == [70]
    assert not path.exists()


def test_the_pid_registry_of_a_running_host_is_not_touched(killed: list[int]):
    me = read_process(ME)
    assert me is not None
    path = pid_file(f"{ME}-{me.started}", BOOT + f"+ {ME} {me.started}\n")

    assert sweep() == killed == []
    assert path.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"+ 10", "+ ² ²\n".encode()], ids=repr)
def test_a_corrupt_pid_registry_is_removed_and_does_not_block_the_start(content: bytes, killed: list[int]):
    corrupt = pid_file(DEAD_HOST, content)

    assert sweep() == killed == []
    assert not corrupt.exists()
