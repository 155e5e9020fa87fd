"""Finding tools: words, spelling, ranking, and the questions with known answers."""

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.naming import qualify
from dragoman.catalog.search import QUERY_WORDS, RESULT_LIMIT, Index, Vocabulary, distance, select
from dragoman.catalog.tools import ServerTool
from dragoman.catalog.words import alike, stem, terms, words
from dragoman.names import ServerName
from tests.cpu_time import CpuTimer
from tests.data.catalogue import make
from tests.unit.fakes import definition


def tool(
    path: str, description: str = "", schema: Mapping[str, Any] | None = None, **more: Any
) -> ServerTool:
    """`server/name`."""
    server, _, name = path.partition("/")
    described = definition(name, schema, description=description, **more)
    return ServerTool(ServerName(server), qualify(server, name), described)


def found(tools: list[ServerTool], query: str, **options: Any) -> list[str]:
    return [f"{one.server}/{one.definition.name}" for one in Index(tools).search(query, **options)]


# Words.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("create_pull_request", "create pull request"),
        ("createPullRequest", "create pull request"),
        ("list-chat.messages", "list chat messages"),
        ("HTTPServer2Config", "http server 2 config"),
        ("getDNSRecords", "get dns records"),
        ("Grüße senden", "gr üß e senden"),
        ("検索 tool", "検 索 tool"),
        ("the user's file", "the user file"),
        ("", ""),
        ("__--..", ""),
    ],
)
def test_a_name_is_split_into_words(text: str, expected: str):
    assert " ".join(words(text)) == expected


@pytest.mark.parametrize(
    "same",
    [
        "merge merges merged merging",
        "schedule scheduled scheduling schedules",
        "translate translated translation",
        "query queries querying",
        "stop stopped stopping",
        "box boxes",
        "branch branches",
        "repository repositories repo repos",
        "deploy deployment deployed",
    ],
)
def test_forms_of_a_word_have_one_stem(same: str):
    assert len({terms(word) for word in same.split()}) == 1


@pytest.mark.parametrize("word", ["status", "this", "is", "as", "access", "bus", "s", "ed", "ing"])
def test_short_words_and_false_plurals_are_unchanged(word: str):
    assert stem(word) in (word, word.rstrip("e"))


@given(st.text(max_size=60))
def test_a_stem_is_never_longer_and_never_empty(text: str):
    for word in words(text):
        assert 0 < len(stem(word)) <= len(word) + 1


def test_synonyms_are_symmetric():
    assert stem("delete") in alike(stem("remove"))
    assert stem("remove") in alike(stem("delete"))
    assert alike("kubernetes") == frozenset()


# Spelling.


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("", "", 0),
        ("abc", "abc", 0),
        ("request", "requst", 1),
        ("email", "emial", 1),
        ("abc", "", 3),
        ("ab", "cd", 2),
    ],
)
def test_the_edit_distance_of_two_words(one: str, other: str, expected: int):
    assert distance(one, other) == distance(other, one) == expected


@pytest.mark.requirement("CAT-7")
@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("kuberntes", "kubernet"),
        ("emial", "email"),
        ("requst", "request"),
        ("calender", "calendar"),
        ("postgre", "postgresql"),
    ],
)
def test_an_unknown_word_is_replaced_by_the_nearest_known_one(word: str, meant: str):
    known = ["kubernet", "email", "request", "calendar", "postgresql", "list", "mail", "quest"]
    near = Vocabulary(known).near(word)
    assert max(near, key=near.__getitem__) == meant


@pytest.mark.parametrize("word", ["xyz", "12345", "zzzzzzzz", "a" * 1000, ""])
def test_a_word_without_a_similar_one_is_ignored(word: str):
    assert Vocabulary(["create", "request"]).near(word) == {}


def test_a_compound_word_is_split():
    assert set(Vocabulary(["auto", "reply", "list"]).near("autoreply")) == {"auto", "reply"}


# Ranking.


def test_a_name_counts_more_than_a_description():
    tools = [tool("a/fetch_page", "Opens mail."), tool("a/open_mail", "Fetches.")]
    assert found(tools, "open mail")[0] == "a/open_mail"


@pytest.mark.requirement("CAT-7")
@pytest.mark.parametrize(
    "query",
    ["send letter", "post a note", "carrier pigeon", "recipient", "who gets it", "correspondence", "Airmail"],
)
def test_a_tool_is_found_by_name_title_description_hint_and_parameters(query: str):
    schema = {"type": "object", "properties": {"recipient": {"type": "string", "description": "Who gets it"}}}
    wanted = tool(
        "post/send_letter",
        "Hand something to the carrier pigeon.",
        schema,
        title="Airmail",
        meta={"anthropic/searchHint": "correspondence"},
    )
    assert found([tool("x/noise", "Nothing of interest."), wanted], query, limit=1) == ["post/send_letter"]


@pytest.mark.requirement("CAT-7")
def test_the_server_can_be_a_search_word_or_a_condition():
    tools = [tool("gitlab/create_issue"), tool("jira/create_issue"), tool("linear/create_issue")]
    assert found(tools, "create a jira issue")[0] == "jira/create_issue"
    assert found(tools, "create issue", server="linear") == ["linear/create_issue"]
    assert found(tools, "create issue", server="nobody") == []


def test_the_order_of_tools_does_not_change_the_answer():
    tools = [tool(f"s{number}/create_issue", "Create an issue.") for number in range(9)]
    forward, backward = found(tools, "create issue", limit=9), found(tools[::-1], "create issue", limit=9)
    assert forward == backward == sorted(forward)


def test_adjacent_words_are_found_as_a_compound():
    tools = [tool("pd/list_oncalls", "Shifts."), tool("tel/make_call"), tool("jira/create_worklog")]
    assert found(tools, "on call", limit=1) == ["pd/list_oncalls"]
    assert found(tools, "log work", limit=1) == ["jira/create_worklog"]


@pytest.mark.parametrize("query", ["", "   ", "the of and", "!!!", "\x00\ud800", "zzzzqqqq", "₤€"])
def test_a_query_without_known_words_finds_nothing(query: str):
    assert found([tool("a/open_box", "Opens.")], query) == []


def test_an_empty_index_finds_nothing():
    assert Index(()).search("open") == []


@pytest.mark.parametrize(("limit", "count"), [(0, 0), (-1, 0), (3, 3), (10_000, RESULT_LIMIT)])
def test_results_are_limited(limit: int, count: int):
    assert len(found([tool(f"a/open_{number}x") for number in range(80)], "open", limit=limit)) == count


@given(st.text(max_size=200))
def test_no_query_raises(query: str):
    assert len(SMALL.search(query)) <= 5


SMALL = Index([tool("a/open_box", "Opens a box."), tool("検索/検索", "ツールを検索する")])


def test_characters_of_other_scripts_are_found():
    assert SMALL.search("検索")[0].server == "検索"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": True, "b": {"description": 7}}},
        {
            "type": "object",
            "properties": {f"p{number}": {"description": "x" * 9999} for number in range(99)},
        },
        {"type": "object", "properties": None},
        {"type": "object", "properties": [1]},
    ],
)
def test_invalid_parameters_are_accepted(schema: Mapping[str, Any]):
    assert found([tool("a/open_box", "", schema)], "open") == ["a/open_box"]


# Select.


@pytest.mark.requirement("CAT-7")
def test_select_gives_exactly_the_named_tools():
    tools = [tool("a/open"), tool("a/close"), tool("b/open"), tool("b/lock")]
    chosen = select("select: mcp__a__open, lock,mcp__a__open , nothing", tools)
    assert chosen is not None
    assert [one.name for one in chosen.tools] == ["mcp__a__open", "mcp__b__lock"]
    assert chosen.unknown == ("nothing",)


def test_an_ambiguous_wire_name_selects_no_tool():
    chosen = select("SELECT:open", [tool("a/open"), tool("b/open")])
    assert chosen is not None
    assert (chosen.tools, chosen.unknown) == ((), ("open",))


def test_a_wire_name_cannot_imitate_another_tools_qualified_name():
    chosen = select("select:mcp__a__open", [tool("evil/mcp__a__open"), tool("a/open")])
    assert chosen is not None
    assert [one.server for one in chosen.tools] == ["a"]


@pytest.mark.parametrize("query", ["selection of mails", "please select: this", "", "open"])
def test_queries_without_select_select_nothing(query: str):
    assert select(query, [tool("a/open")]) is None


# Bounds: time only as a ratio to the same with less.


def seconds_of(act: Any) -> float:
    taken: list[float] = []
    for _ in range(3):
        start = time.process_time()
        act()
        taken.append(time.process_time() - start)
    return min(taken)


def test_only_the_first_words_of_a_very_long_query_are_used():
    index = Index([tool(f"a/open_box_{number}", "Opens a box.") for number in range(500)])
    short = " ".join(f"open{number} box" for number in range(QUERY_WORDS))
    index.search(short)
    assert (
        seconds_of(lambda: index.search(short * 20_000)) < 20 * seconds_of(lambda: index.search(short)) + 0.02
    )
    assert seconds_of(lambda: index.search("a" * 1_000_000)) < 0.5


def test_only_the_beginning_of_long_names_and_descriptions_is_indexed():
    names = [f"{'open_' * 200}{number}"[:1024] for number in range(200)]
    tools = [tool(f"a/{name}", "box " * 100_000) for name in names]
    assert found(tools, "box", limit=1)


@pytest.mark.slow
def test_a_hundred_thousand_tools_are_searched_in_bounded_time():
    tools = [tool(f"s/open_{number}_thing{number}", "Opens a thing.") for number in range(100_000)]
    start = CpuTimer()
    index = Index(tools)
    assert index.search("opn thng", limit=5)
    assert index.search("thing99999", limit=1)[0].definition.name == "open_99999_thing99999"
    assert start.seconds() < 60


# The questions with known answers.


@pytest.fixture(scope="module")
def catalogue() -> Index:
    return Index(make.tools())


def recall(index: Index, asked: list[make.Question]) -> float:
    """How many of the questions have a right answer among the first five tools."""
    hits = 0
    for question in asked:
        answers = {(one.server, one.definition.name) for one in index.search(question.text)}
        hits += bool(answers & question.answers)
    return hits / len(asked)


def test_the_test_data_is_large_enough():
    assert len(make.definitions()) >= 2000
    assert len(make.questions()) == 200
    assert len({(server, one["name"]) for server, one in make.definitions()}) == len(make.definitions())


@pytest.mark.requirement("CAT-7")
def test_for_nineteen_of_twenty_queries_the_right_tool_is_among_five(catalogue: Index):
    assert recall(catalogue, make.questions()) >= 0.95


@pytest.mark.requirement("CAT-7")
@pytest.mark.parametrize(
    ("held_out", "least"), [pytest.param(False, 0.95, id="tuned on"), pytest.param(True, 0.93, id="held out")]
)
def test_both_halves_of_the_queries_reach_the_bound(catalogue: Index, held_out: bool, least: float):
    assert recall(catalogue, [one for one in make.questions() if one.is_held_out == held_out]) >= least


@pytest.mark.parametrize(("file", "least"), [("fresh.txt", 0.95), ("drawn.txt", 0.8)])
def test_queries_written_after_tuning_reach_the_bound(catalogue: Index, file: str, least: float):
    assert recall(catalogue, make.questions(file)) >= least
