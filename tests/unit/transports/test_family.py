"""Which processes belong to a server."""

import subprocess
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.processes import ProcessFacts
from dragoman.transports import family as families
from dragoman.transports.family import Family, Snapshot

LEADER, STARTED, MARKER = 100, 1000, "token.1"


def process(
    pid: int, *, parent: int = 1, session: int | None = None, started: int = STARTED + 5, state: str = "S"
) -> ProcessFacts:
    session = pid if session is None else session
    return ProcessFacts(pid, state, parent, session, session, started)


HEAD = process(LEADER, parent=50, started=STARTED)

CASES: dict[str, tuple[list[ProcessFacts], dict[int, str], list[int]]] = {
    "the leader alone": ([HEAD], {}, [100]),
    "a child in the session": ([HEAD, process(101, parent=100, session=100)], {}, [100, 101]),
    "an orphan in the session": ([HEAD, process(101, session=100)], {}, [100, 101]),
    "a child in a session of its own": ([HEAD, process(101, parent=100)], {}, [100, 101]),
    "its child in turn": ([HEAD, process(101, parent=100), process(102, parent=101)], {}, [100, 101, 102]),
    "one adopted by init, with the marker": ([HEAD, process(101)], {101: MARKER}, [100, 101]),
    "its child, without the marker": (
        [HEAD, process(101), process(102, parent=101)],
        {101: MARKER},
        [100, 101, 102],
    ),
    "one with another's marker": ([HEAD, process(101)], {101: "token.11"}, [100]),
    "one adopted by init": ([HEAD, process(101)], {}, [100]),
    "a leader that has ended": ([HEAD._replace(state="Z"), process(101, session=100)], {}, [101]),
    "a leader that is gone": ([process(101, session=100)], {}, [101]),
    "a stranger with the leader's pid": (
        [process(LEADER, started=STARTED + 9), process(102, session=100), process(103)],
        {103: MARKER},
        [103],
    ),
    "nobody": ([process(7), process(8)], {}, []),
}


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> Family:
    monkeypatch.setattr(families, "start_of", lambda pid: STARTED)
    return Family(cast("subprocess.Popen[bytes]", SimpleNamespace(pid=LEADER, returncode=0)), MARKER)


def snapshot(processes: list[ProcessFacts], markers: dict[int, str]) -> Snapshot:
    return Snapshot(
        processes, {(facts.pid, facts.started): markers.get(facts.pid, "") for facts in processes}
    )


@pytest.mark.parametrize(("processes", "markers", "members"), CASES.values(), ids=CASES.keys())
def test_which_processes_belong_to_a_family(family: Family, processes: Any, markers: Any, members: list[int]):
    found = family.members(snapshot(processes, markers))

    assert sorted(facts.pid for facts in found) == members
    assert family.is_gone(found) is (not members)


def test_a_process_that_was_seen_is_recognized_after_it_was_reparented(family: Family):
    family.members(snapshot([HEAD, process(101, parent=100)], {}))

    assert [facts.pid for facts in family.members(snapshot([process(101)], {}))] == [101]
    assert family.members(snapshot([process(101, started=STARTED + 99)], {})) == []


def test_the_oldest_comes_first(family: Family):
    young, old = (
        process(101, session=100, started=STARTED + 9),
        process(102, session=100, started=STARTED + 3),
    )

    assert [facts.pid for facts in family.members(snapshot([young, old], {}))] == [102, 101]
