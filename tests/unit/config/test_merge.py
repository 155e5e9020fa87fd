"""Which of several entries counts, compared with a small model of the rules."""

import random
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from dragoman.config.approval import Approval, ApprovalState
from dragoman.config.merge import Candidate, ConfiguredServer, EntryChecks, Merged, check_eligibility, merge
from dragoman.config.model import ServerConfig
from dragoman.config.policy import PolicyVerdict
from dragoman.config.scopes import IN_PROJECT, SCOPES, Scope
from dragoman.errors import ConfigError

pytestmark = pytest.mark.slow

# --- what is known about an entry, and the judgements made of it ---


class Facts(Struct, frozen=True):
    approval: ApprovalState = "approved"
    program: str | None = "tool"
    """None: the entry cannot be understood."""
    admitted: bool = True


def facts_of(candidate: Candidate) -> Facts:
    assert isinstance(candidate.given, Facts)
    return candidate.given


def approve(candidate: Candidate) -> Approval | None:
    if candidate.scope not in IN_PROJECT:
        return None
    state = facts_of(candidate).approval
    return Approval(state=state, reason=f"it is {state}")


def parse_entry(candidate: Candidate) -> ServerConfig:
    program = facts_of(candidate).program
    if program is None:
        raise ConfigError("this entry makes no sense")
    return ServerConfig(command=program)


def judge(off: Iterable[str] = ()) -> EntryChecks:
    return EntryChecks(
        approval=approve,
        parse_entry=parse_entry,
        policy=lambda candidate, _: PolicyVerdict(facts_of(candidate).admitted, "the rule"),
        disabled_by=dict.fromkeys(off, "somewhere").get,
    )


def parts_to_candidates(parts: list[tuple[Scope, dict[str, Facts]]]) -> list[Candidate]:
    ordered = sorted(parts, key=lambda part: SCOPES.index(part[0]))
    return [
        Candidate(name=name, scope=scope, source=f"file {number}", given=given, part=number)
        for number, (scope, entries) in enumerate(ordered)
        for name, given in entries.items()
    ]


FACTS = st.builds(
    Facts,
    approval=st.sampled_from(["approved", "pending", "rejected"]),
    program=st.sampled_from([None, "one", "two", "three"]),
    admitted=st.sampled_from([True, True, True, False]),
)
NAMES = st.sampled_from(["a", "b", "c", "d"])
PARTS = st.lists(
    st.tuples(st.sampled_from(SCOPES), st.dictionaries(NAMES, FACTS, max_size=4)), max_size=7
).map(parts_to_candidates)
OFF = st.sets(NAMES, max_size=2)


# --- the model: what ought to come out ---


def allowed_to_count(candidate: Candidate) -> bool:
    return candidate.scope not in IN_PROJECT or facts_of(candidate).approval == "approved"


def strongest(claims: list[Candidate]) -> Candidate:
    approved = [claim for claim in claims if allowed_to_count(claim)]
    waiting = [claim for claim in claims if facts_of(claim).approval == "pending"]
    return max(approved or waiting or claims, key=lambda claim: (SCOPES.index(claim.scope), claim.part))


def eligibility(winner: Candidate, off: set[str]) -> str:
    facts = facts_of(winner)
    if not facts.admitted:
        return "refused"
    if winner.name in off:
        return "disabled"
    if not allowed_to_count(winner):
        return facts.approval
    return "broken" if facts.program is None else "ready"


def model(candidates: list[Candidate], off: set[str], exclusive: bool) -> dict[str, tuple[Candidate, str]]:
    left = [each for each in candidates if each.scope == "enterprise" or not exclusive]
    winners = {
        name: strongest([each for each in left if each.name == name]) for name in {each.name for each in left}
    }
    effect = {name: (winner, eligibility(winner, off)) for name, winner in winners.items()}
    ready = [winner for winner, state in effect.values() if state == "ready"]
    for one in ready:
        twins = [place(other) for other in ready if facts_of(other).program == facts_of(one).program]
        if max(twins) > place(one):
            del effect[one.name]
    return effect


def place(candidate: Candidate) -> tuple[bool, int]:
    """What comes with a project takes the place of nothing that a person, plugin or administrator has."""
    return candidate.scope in ("plugin", "user", "dynamic", "enterprise"), candidate.part


# --- properties ---


@pytest.mark.requirement("CFG-1", "CFG-3", "CFG-6")
@given(PARTS, OFF, st.booleans())
def test_the_effective_servers_equal_those_of_the_reference_model(
    candidates: list[Candidate], off: set[str], exclusive: bool
):
    merged = merge(candidates, judge(off), exclusive=exclusive)
    effect = {name: (server.candidate, server.eligibility) for name, server in merged.servers.items()}
    assert effect == model(candidates, off, exclusive)


@pytest.mark.requirement("CFG-1")
@given(PARTS, OFF, st.booleans())
def test_each_entry_is_effective_or_dropped_with_a_reason(
    candidates: list[Candidate], off: set[str], exclusive: bool
):
    merged = merge(candidates, judge(off), exclusive=exclusive)
    in_effect = [id(server.candidate) for server in merged.servers.values()]
    dropped = [id(each.candidate) for each in merged.dropped]
    assert sorted(in_effect + dropped) == sorted(map(id, candidates))
    assert all(each.text for each in merged.dropped)


@given(PARTS, OFF)
def test_a_displaced_server_is_reported_with_both_entries(candidates: list[Candidate], off: set[str]):
    merged = merge(candidates, judge(off), exclusive=False)
    replaced = {id(each.candidate) for each in merged.dropped if each.why in ("replaced", "not approved")}
    for server in merged.servers.values():
        others = {id(each) for each in candidates if each.name == server.name} - {id(server.candidate)}
        assert {id(each) for each in server.replaced} == others
        assert others <= replaced


@pytest.mark.requirement("CFG-3")
@given(PARTS, OFF)
def test_exclusive_enterprise_servers_remove_all_others(candidates: list[Candidate], off: set[str]):
    merged = merge(candidates, judge(off), exclusive=True)
    assert {server.scope for server in merged.servers.values()} <= {"enterprise"}
    excluded = [each.candidate for each in merged.dropped if each.why == "exclusive"]
    assert excluded == [each for each in candidates if each.scope != "enterprise"]


@pytest.mark.requirement("CFG-8")
@given(PARTS, OFF)
def test_an_entry_without_approval_changes_nothing_for_other_servers(
    candidates: list[Candidate], off: set[str]
):
    """A cloned project may add what waits for approval; it takes nothing away."""
    without = merge([each for each in candidates if allowed_to_count(each)], judge(off), exclusive=False)
    merged = merge(candidates, judge(off), exclusive=False)
    for name, server in without.servers.items():
        assert merged.servers[name].candidate is server.candidate
        assert merged.servers[name].eligibility == server.eligibility
    for name in merged.servers.keys() - without.servers.keys():
        assert merged.servers[name].eligibility in ("pending", "rejected", "refused", "disabled")


@pytest.mark.requirement("CFG-6")
@given(PARTS, OFF)
def test_only_servers_that_would_start_are_duplicates_and_only_of_a_higher_scope(
    candidates: list[Candidate], off: set[str]
):
    merged = merge(candidates, judge(off), exclusive=False)
    ready = [server for server in merged.servers.values() if server.eligibility == "ready"]
    for gone in (each.candidate for each in merged.dropped if each.why == "duplicate"):
        assert eligibility(gone, off) == "ready"
        twins = [server for server in ready if facts_of(server.candidate).program == facts_of(gone).program]
        assert twins
        assert all(place(server.candidate) > place(gone) for server in twins)


@given(PARTS, OFF, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_entries_does_not_matter(
    candidates: list[Candidate], off: set[str], exclusive: bool, chance: random.Random
):
    shuffled = list(candidates)
    chance.shuffle(shuffled)

    def essence(merged: Merged) -> tuple[Any, Any]:
        servers = {name: (id(each.candidate), each.eligibility) for name, each in merged.servers.items()}
        return servers, {(id(each.candidate), each.why) for each in merged.dropped}

    first = essence(merge(candidates, judge(off), exclusive=exclusive))
    assert essence(merge(shuffled, judge(off), exclusive=exclusive)) == first


@given(PARTS, OFF, st.booleans())
def test_merging_is_deterministic(candidates: list[Candidate], off: set[str], exclusive: bool):
    def outcome() -> str:
        merged = merge(candidates, judge(off), exclusive=exclusive)
        servers = [(server.name, server.source, server.eligibility) for server in merged.servers.values()]
        return repr((servers, [(each.candidate.source, each.why, each.text) for each in merged.dropped]))

    assert outcome() == outcome()


# --- plain examples ---


def claim(scope: Scope, name: str = "box", part: int | None = None, **facts: Any) -> Candidate:
    number = SCOPES.index(scope) if part is None else part
    return Candidate(
        name=name,
        scope=scope,
        source=f"{scope} {number}",
        given=Facts(**{"program": scope, **facts}),
        part=number,
    )


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("lower", range(len(SCOPES) - 1))
def test_of_two_scopes_the_higher_takes_precedence(lower: int):
    for higher in range(lower + 1, len(SCOPES)):
        merged = merge([claim(SCOPES[higher]), claim(SCOPES[lower])], judge(), exclusive=False)
        assert merged.servers["box"].scope == SCOPES[higher]
        assert [each.why for each in merged.dropped] == ["replaced"]
        assert f"{SCOPES[higher]} {higher}" in merged.dropped[0].text


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize("turned", [list, reversed])
def test_within_a_scope_the_nearer_file_takes_precedence(turned: Callable[[Any], Iterable[Candidate]]):
    far, near = claim("project", part=3), claim("project", part=4)
    merged = merge(turned([far, near]), judge(), exclusive=False)
    assert merged.servers["box"].candidate is near


@pytest.mark.requirement("CFG-8")
@pytest.mark.parametrize("state", ["pending", "rejected"])
def test_a_persons_server_is_used_while_a_projects_is_not_approved(state: str):
    merged = merge([claim("user"), claim("project", approval=state)], judge(), exclusive=False)
    assert merged.servers["box"].scope == "user"
    assert merged.servers["box"].eligibility == "ready"
    assert [each.why for each in merged.dropped] == ["not approved"]
    assert f"it is {state}" in merged.dropped[0].text


@pytest.mark.requirement("CFG-6")
def test_the_same_program_under_two_names_of_one_file_is_kept():
    both = [claim("user", "work", program="mail"), claim("user", "home", program="mail")]
    assert set(merge(both, judge(), exclusive=False).servers) == {"work", "home"}


@pytest.mark.requirement("CFG-6")
def test_the_same_program_in_two_scopes_runs_once_and_the_other_is_reported():
    both = [claim("user", "mine", program="mail"), claim("dynamic", "now", program="mail")]
    merged = merge(both, judge(), exclusive=False)
    assert list(merged.servers) == ["now"]
    assert merged.dropped[0].why == "duplicate"
    assert "'now'" in merged.dropped[0].text


@pytest.mark.requirement("CFG-6")
@pytest.mark.parametrize(
    ("higher", "off"),
    [
        (claim("local", "theirs", approval="pending", program="mail"), []),
        (claim("local", "theirs", approval="rejected", program="mail"), []),
        (claim("dynamic", "theirs", admitted=False, program="mail"), []),
        (claim("dynamic", "theirs", program="mail"), ["theirs"]),
        (claim("dynamic", "theirs", program=None), []),
    ],
    ids=["pending", "rejected", "refused", "switched off", "broken"],
)
def test_an_entry_that_would_not_start_is_not_a_duplicate(higher: Candidate, off: list[str]):
    merged = merge([claim("user", "mine", program="mail"), higher], judge(off), exclusive=False)
    assert set(merged.servers) == {"mine", "theirs"}
    assert merged.servers["mine"].eligibility == "ready"


# --- whether one server may be started ---


@pytest.mark.parametrize("admitted", [True, False])
@pytest.mark.parametrize("off", [[], ["box"]])
@pytest.mark.parametrize("state", [None, "approved", "pending", "rejected"])
@pytest.mark.parametrize("error", [None, ConfigError("it is broken")])
def test_the_state_of_a_server_has_the_most_important_reason(
    admitted: bool, off: list[str], state: ApprovalState | None, error: ConfigError | None
):
    server = ConfiguredServer(
        candidate=claim("local", admitted=admitted),
        approval=None if state is None else Approval(state=state, reason="an answer"),
        error=error,
    )
    reasons = [
        ("refused", not admitted, "the rule"),
        ("disabled", bool(off), "disabled in somewhere"),
        (state or "", state in ("pending", "rejected"), "an answer"),
        ("broken", error is not None, "it is broken"),
        ("ready", True, None),
    ]
    expected = next((eligibility, reason) for eligibility, holds, reason in reasons if holds)
    stands = check_eligibility(server, judge(off))
    assert (stands.eligibility, stands.reason) == expected
