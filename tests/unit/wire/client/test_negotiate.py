"""The dual-era algorithms for stdio and for HTTP, row by row (specification digest §2.4 and §2.5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.protocol import LEGACY_REVISIONS, MODERN_REVISIONS, REVISIONS
from dragoman.wire.client.negotiate import (
    Discovered,
    Exited,
    GiveUp,
    Probe,
    ProbeAnswer,
    ProbeRefused,
    ProbeRejected,
    Silent,
    SpeakLegacy,
    SpeakModern,
    Step,
    after_probe,
    first_step,
    is_verdict,
    newest_mutual,
    supported_in,
    wants_older_transport,
)
from dragoman.wire.messages import DiscoverResult

MODERN = "2026-07-28"
NEWEST_LEGACY = "2025-11-25"


def discovered(*versions: str) -> Discovered:
    return Discovered(DiscoverResult(list(versions)))


def unsupported(data: object = None) -> ProbeRefused:
    return ProbeRefused(-32022, "unsupported protocol version", data)


@pytest.mark.parametrize(
    ("protocol", "remembered", "step"),
    [
        pytest.param("auto", None, Probe(MODERN), id="unknown server: probe"),
        pytest.param("auto", "modern", Probe(MODERN), id="was modern: probe"),
        pytest.param("auto", "legacy", SpeakLegacy(NEWEST_LEGACY), id="was legacy: no probe"),
        pytest.param(
            "auto", "sse", SpeakLegacy(NEWEST_LEGACY), id="was reached by the older transport: no probe"
        ),
        pytest.param("auto", "gibberish", Probe(MODERN), id="a memory that cannot be understood: probe"),
        pytest.param("legacy", None, SpeakLegacy(NEWEST_LEGACY), id="pinned to the legacy era"),
        pytest.param(MODERN, "sse", Probe(MODERN), id="a pin beats the memory: the older transport"),
        pytest.param("legacy", "modern", SpeakLegacy(NEWEST_LEGACY), id="a pin beats the memory: legacy"),
        pytest.param(MODERN, "legacy", Probe(MODERN), id="a pin beats the memory: modern"),
        pytest.param("2025-11-25", None, SpeakLegacy("2025-11-25"), id="pinned to 2025-11-25"),
        pytest.param("2025-06-18", None, SpeakLegacy("2025-06-18"), id="pinned to 2025-06-18"),
        pytest.param("2025-03-26", None, SpeakLegacy("2025-03-26"), id="pinned to 2025-03-26"),
        pytest.param("2024-11-05", "modern", SpeakLegacy("2024-11-05"), id="pinned to 2024-11-05"),
    ],
)
def test_the_first_step_with_a_fresh_process(protocol: str, remembered: str | None, step: Step):
    assert first_step(protocol, remembered) == step


AFTER_THE_PROBE = [
    # a DiscoverResult
    ("mutual modern", discovered(MODERN), "modern"),
    ("modern among legacy ones", discovered("2025-06-18", MODERN, "2024-11-05"), "modern"),
    ("modern among unknown ones", discovered("2099-01-01", MODERN), "modern"),
    ("only legacy: the newest mutual", discovered("2024-11-05", "2025-06-18"), SpeakLegacy("2025-06-18")),
    ("legacy among unknown ones", discovered("2099-01-01", "2024-11-05"), SpeakLegacy("2024-11-05")),
    ("disjoint", discovered("2099-01-01"), "give up"),
    ("no version at all", discovered(), "give up"),
    # error -32022
    ("-32022, mutual modern: again, though just sent", unsupported({"supported": [MODERN]}), Probe(MODERN)),
    ("-32022, modern and legacy", unsupported({"supported": ["2025-11-25", MODERN]}), Probe(MODERN)),
    ("-32022, legacy", unsupported({"supported": ["2025-03-26"]}), SpeakLegacy("2025-03-26")),
    ("-32022, disjoint", unsupported({"supported": ["2099-01-01"]}), "give up"),
    ("-32022 without data", unsupported(), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, data is a string", unsupported("2026-07-28"), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, data is a list", unsupported([MODERN]), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, supported is a string", unsupported({"supported": MODERN}), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, supported is null", unsupported({"supported": None}), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, supported is empty", unsupported({"supported": []}), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, supported holds no strings", unsupported({"supported": [1, {}]}), SpeakLegacy(NEWEST_LEGACY)),
    ("-32022, one usable among rubbish", unsupported({"supported": [7, None, MODERN]}), Probe(MODERN)),
    # errors only a modern server sends
    ("-32020", ProbeRefused(-32020), SpeakModern(MODERN)),
    ("-32021", ProbeRefused(-32021), SpeakModern(MODERN)),
    # any other error
    ("-32601", ProbeRefused(-32601, "Method not found"), SpeakLegacy(NEWEST_LEGACY)),
    ("-32602", ProbeRefused(-32602, "Invalid params"), SpeakLegacy(NEWEST_LEGACY)),
    ("-32600", ProbeRefused(-32600), SpeakLegacy(NEWEST_LEGACY)),
    ("-32700", ProbeRefused(-32700), SpeakLegacy(NEWEST_LEGACY)),
    ("-32000", ProbeRefused(-32000, "Server not initialized"), SpeakLegacy(NEWEST_LEGACY)),
    ("-32001 of a release candidate", ProbeRefused(-32001), SpeakLegacy(NEWEST_LEGACY)),
    ("code 0", ProbeRefused(0), SpeakLegacy(NEWEST_LEGACY)),
    (
        "other codes may hold versions",
        ProbeRefused(-32602, "", {"supported": [MODERN]}),
        SpeakLegacy(NEWEST_LEGACY),
    ),
    # no answer
    ("it exits", Exited(), SpeakLegacy(NEWEST_LEGACY, respawn=True)),
    ("it stays silent", Silent(), SpeakLegacy(NEWEST_LEGACY)),
]


@pytest.mark.parametrize(
    ("answer", "expected"), [pytest.param(*row[1:], id=row[0]) for row in AFTER_THE_PROBE]
)
def test_the_next_step_for_each_answer_to_the_probe(answer: ProbeAnswer, expected: Step | str):
    step = after_probe(answer, tried=MODERN, retried=False)

    match expected:
        case "modern":
            assert isinstance(answer, Discovered)
            assert step == SpeakModern(MODERN, answer.result)
        case "give up":
            assert isinstance(step, GiveUp)
        case _:
            assert step == expected


def test_the_probe_is_repeated_only_once():
    step = after_probe(unsupported({"supported": [MODERN]}), tried=MODERN, retried=True)

    assert isinstance(step, GiveUp)


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        (Silent(), SpeakLegacy(NEWEST_LEGACY)),
        (Exited(), SpeakLegacy(NEWEST_LEGACY, respawn=True)),
        (unsupported({"supported": ["2025-06-18"]}), SpeakLegacy("2025-06-18")),
        (ProbeRefused(-32021), SpeakModern(MODERN)),
    ],
)
def test_every_other_answer_to_the_second_probe_has_the_same_next_step(answer: ProbeAnswer, step: Step):
    assert after_probe(answer, tried=MODERN, retried=True) == step


def test_a_failed_negotiation_names_the_revisions_of_both_sides_and_the_next_step():
    step = after_probe(discovered("2099-01-01", "2099-02-02"), tried=MODERN, retried=False)

    assert isinstance(step, GiveUp)
    assert "2099-01-01, 2099-02-02" in step.cause
    assert all(revision in step.cause for revision in REVISIONS)
    assert "Update" in step.hint


def test_a_failed_negotiation_quotes_only_the_first_of_many_revisions():
    step = after_probe(discovered(*(f"v{n}" for n in range(10_000))), tried=MODERN, retried=False)

    assert isinstance(step, GiveUp)
    assert len(step.cause) < 500


@pytest.mark.parametrize(
    "answer",
    [
        Silent(),
        Exited(),
        ProbeRefused(-32601),
        discovered("2025-06-18"),
        unsupported({"supported": ["2025-06-18"]}),
    ],
    ids=repr,
)
def test_an_entry_pinned_to_the_modern_era_never_falls_back(answer: ProbeAnswer):
    step = after_probe(answer, tried=MODERN, retried=False, protocol=MODERN)

    assert isinstance(step, GiveUp)
    assert MODERN in step.cause
    assert "auto" in step.hint


@pytest.mark.parametrize(
    "answer", [discovered(MODERN), ProbeRefused(-32020), unsupported({"supported": [MODERN]})], ids=repr
)
def test_a_pinned_revision_does_not_change_the_next_step_after_a_modern_answer(answer: ProbeAnswer):
    pinned = after_probe(answer, tried=MODERN, retried=False, protocol=MODERN)

    assert pinned == after_probe(answer, tried=MODERN, retried=False)


@given(st.lists(st.sampled_from([*REVISIONS, "2099-01-01", ""])))
def test_the_chosen_revision_is_the_newest_common_one(theirs: list[str]):
    found = newest_mutual(theirs, REVISIONS)

    mutual = sorted(set(theirs) & set(REVISIONS))
    assert found == (mutual[-1] if mutual else None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("supported"), inner),
    max_leaves=8,
)


@given(st.integers(), JSON, st.booleans())
def test_any_error_gives_a_decision(code: int, data: object, retried: bool):
    step = after_probe(ProbeRefused(code, "", data), tried=MODERN, retried=retried)

    assert isinstance(step, Probe | SpeakModern | SpeakLegacy | GiveUp)
    if isinstance(step, SpeakLegacy):
        assert step.offer in LEGACY_REVISIONS
    if isinstance(step, Probe | SpeakModern):
        assert step.revision in MODERN_REVISIONS
    assert all(isinstance(version, str) for version in supported_in(data))


# --- over HTTP ---


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize(
    ("status", "tells"),
    [
        (400, True),
        (404, True),
        (405, True),
        (406, True),
        (410, True),
        (415, True),
        (422, True),
        (499, True),
        # Who asks, through whom, and how often: nothing of the era.
        (401, False),
        (403, False),
        (407, False),
        (408, False),
        (425, False),
        (429, False),
        # The far end is in trouble, or elsewhere.
        (500, False),
        (502, False),
        (503, False),
        (504, False),
        (599, False),
        (301, False),
        (307, False),
        (200, False),
        (0, False),
    ],
)
def test_which_statuses_determine_the_era(status: int, tells: bool):
    assert is_verdict(status) is tells


@pytest.mark.requirement("TRN-10")
@given(st.integers(400, 499), st.booleans())
def test_a_refusal_without_details_means_the_legacy_era_on_the_same_connection(status: int, retried: bool):
    assert after_probe(ProbeRejected(status), tried=MODERN, retried=retried) == SpeakLegacy(NEWEST_LEGACY)


@pytest.mark.requirement("TRN-10")
def test_a_refusal_without_details_fails_an_entry_pinned_to_the_modern_era():
    step = after_probe(ProbeRejected(404), tried=MODERN, retried=False, protocol=MODERN)

    assert isinstance(step, GiveUp)
    assert MODERN in step.cause


HTTP_TABLE = [
    ("200, mutual modern", discovered(MODERN), "modern"),
    ("200, only legacy versions", discovered("2025-06-18"), SpeakLegacy("2025-06-18")),
    ("-32022 with mutual modern", unsupported({"supported": [MODERN]}), Probe(MODERN)),
    (
        "-32022, only legacy: the newest of them",
        unsupported({"supported": ["2025-03-26", "2025-06-18"]}),
        SpeakLegacy("2025-06-18"),
    ),
    ("-32022, disjoint: no fall back", unsupported({"supported": ["2099-01-01"]}), "give up"),
    ("-32020", ProbeRefused(-32020), SpeakModern(MODERN)),
    ("-32021", ProbeRefused(-32021), SpeakModern(MODERN)),
    ("400 without a body", ProbeRejected(400), SpeakLegacy(NEWEST_LEGACY)),
    ("400 with -32000", ProbeRefused(-32000, "Mcp-Session-Id required"), SpeakLegacy(NEWEST_LEGACY)),
    ("-32601", ProbeRefused(-32601), SpeakLegacy(NEWEST_LEGACY)),
    ("-32600", ProbeRefused(-32600), SpeakLegacy(NEWEST_LEGACY)),
    ("-32602", ProbeRefused(-32602), SpeakLegacy(NEWEST_LEGACY)),
    ("no answer in time: initialize is worth a try", Silent(), SpeakLegacy(NEWEST_LEGACY)),
]


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize(("answer", "expected"), [pytest.param(*row[1:], id=row[0]) for row in HTTP_TABLE])
def test_the_next_step_for_each_answer_to_the_probe_over_http(answer: ProbeAnswer, expected: Step | str):
    test_the_next_step_for_each_answer_to_the_probe(answer, expected)


@pytest.mark.requirement("TRN-10")
@pytest.mark.parametrize(
    ("protocol", "may"),
    [
        ("auto", True),
        ("legacy", True),
        ("2024-11-05", True),
        ("2025-03-26", False),
        ("2025-06-18", False),
        ("2025-11-25", False),
        (MODERN, False),
    ],
)
def test_which_entries_may_fall_back_to_the_older_transport(protocol: str, may: bool):
    for status in (400, 404, 405):
        assert wants_older_transport(status, protocol) is may


@pytest.mark.requirement("TRN-10")
@given(st.integers(100, 599).filter(lambda status: status not in (400, 404, 405)))
def test_no_other_status_leads_to_the_older_transport(status: int):
    assert not wants_older_transport(status, "auto")
