"""Names for models: always legal, never shared, the same every time."""

import itertools
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.naming import (
    HASH_LENGTHS,
    LIMIT,
    _doubtful,  # pyright: ignore[reportPrivateUsage]
    assign,
    plain,
    prefix,
    qualify,
)

LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")

Pair = tuple[str, str]

pytestmark = pytest.mark.requirement("CAT-1")


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("github", "create_issue", "mcp__github__create_issue"),
        ("github", "create-issue", "mcp__github__create-issue"),
        ("my server", "do it!", "mcp__my_server__do_it_"),
        ("claude.ai Gmail", "search", "mcp__claude_ai_Gmail__search"),
        ("claude.ai Google  Drive (beta)", "list files", "mcp__claude_ai_Google_Drive_beta__list_files"),
        ("claude.ai _x_", "__y__", "mcp__claude_ai_x____y__"),
        ("claude_ai  x", "y", "mcp__claude_ai__x__y"),
        ("slack", "search_public", "mcp__slack__search_public"),
        ("ide", "mcp__other__tool", "mcp__ide__mcp__other__tool"),
        ("a.b", "c/d", "mcp__a_b__c_d"),
        ("büro", "öffne", "mcp__b_ro___ffne"),
        ("天気", "予報", "mcp______" + "__"),
        ("s", "🙂", "mcp__s___"),
        ("s", "", "mcp__s__"),
        ("s", "a\nb\x1b", "mcp__s__a_b_"),
        ("s", "\ud800", "mcp__s___"),
        ("s", "t" * 56, "mcp__s__" + "t" * 56),
    ],
)
def test_qualified_names_of_tools(server: str, tool: str, name: str):
    assert qualify(server, tool) == name


def test_only_ascii_letters_digits_underscore_and_hyphen_are_kept():
    assert plain("aZ09_-.~/ ß٣Ⅷ") == "aZ09_-_______"[: len("aZ09_-.~/ ß٣Ⅷ")]


def test_a_name_too_long_keeps_a_readable_head_and_a_hash():
    name = qualify("github", "create_issue_" * 10)

    assert len(name) == LIMIT
    assert re.fullmatch(r"mcp__github__create_issue_create_issue_create_issue_[a-z_]*_[0-9a-f]{8}", name)


def test_two_long_names_with_the_same_head_differ():
    assert qualify("s", "x" * 100) != qualify("s", "x" * 101)


def test_the_hash_is_the_same_on_every_machine_and_in_every_version():
    assert qualify("s", "x" * 100) == "mcp__s__" + "x" * 47 + "_" + HASH_OF_S_AND_X


HASH_OF_S_AND_X = "244cf40d"  # the first eight hex digits of sha256(b"s\0" + b"x" * 100)


def test_the_hash_of_a_pair_does_not_depend_on_where_the_server_ends():
    assert qualify("a", "b__" + "c" * 80) != qualify("a__b", "c" * 80)


COLLISIONS = [
    [("s", "a.b"), ("s", "a_b")],
    [("s", "a b"), ("s", "a.b"), ("s", "a_b")],
    [("a", "b__c"), ("a__b", "c")],
    [("a.b", "c"), ("a_b", "c")],
    [("s", "é"), ("s", "ü")],
]


@pytest.mark.parametrize("pairs", COLLISIONS, ids=str)
def test_all_tools_that_would_share_a_name_get_a_hash_in_any_order(pairs: list[Pair]):
    names = [assign(order).of for order in itertools.permutations(pairs)]

    assert all(given == names[0] for given in names)
    assert len(set(names[0].values())) == len(pairs)
    assert all(name == qualify(*pair, hash_length=8) for pair, name in names[0].items())


def test_a_tool_with_a_unique_name_gets_no_hash():
    names = assign([("s", "a.b"), ("s", "a_b"), ("s", "c"), ("other", "a_b")]).of

    assert names["s", "c"] == "mcp__s__c"
    assert names["other", "a_b"] == "mcp__other__a_b"


def test_names_do_not_depend_on_servers_without_collisions():
    alone = assign([("s", "a")]).of
    together = assign([("s", "a"), *((f"server{n}", "a") for n in range(100))]).of

    assert together["s", "a"] == alone["s", "a"]


def test_a_tool_named_like_the_hashed_name_of_another_gets_a_different_name():
    imitated = qualify("s", "a.b", hash_length=8).removeprefix("mcp__s__")
    pairs = [("s", "a.b"), ("s", "a_b"), ("s", imitated)]
    names = assign(pairs).of

    assert len(set(names.values())) == 3
    assert all(assign(order).of == names for order in itertools.permutations(pairs))


def test_repeated_imitations_of_hashes_lead_to_no_shared_name():
    """Whoever knows the rule can offer a tool that is called like the next hash, and the next."""
    victim = ("a__b", "c")
    imitated = [qualify(*victim, length).removeprefix("mcp__a__") for length in HASH_LENGTHS[1:]]
    pairs = [victim, *(("a", name) for name in ("b__c", *imitated))]
    pairs += [("a", qualify("a", name, 32).removeprefix("mcp__a__")) for name in imitated]
    names = assign(pairs).of

    assert len(set(names.values())) == len(pairs)
    assert all(assign(order).of == names for order in itertools.islice(itertools.permutations(pairs), 200))


PAIRS = st.tuples(
    st.text(max_size=70) | st.sampled_from(["a", "a__b", "a.b"]),
    st.text(max_size=200) | st.text("ab._ ", max_size=4),
)


@given(st.lists(PAIRS, unique=True))
def test_names_are_valid_and_unique(pairs: list[Pair]):
    names = assign(pairs).of

    assert names.keys() == set(pairs)
    assert len(set(names.values())) == len(pairs)
    assert all(LEGAL.fullmatch(name) for name in names.values())


@given(st.lists(PAIRS, unique=True), st.integers())
def test_names_do_not_depend_on_the_order(pairs: list[Pair], seed: int):
    shuffled = list(pairs)
    random.Random(seed).shuffle(shuffled)

    assert assign(pairs).of == assign(shuffled).of


@given(PAIRS)
def test_a_name_contains_the_name_of_its_server(pair: Pair):
    name = qualify(*pair)

    assert name.startswith(prefix(pair[0])[: LIMIT - 9])


def test_servers_with_similar_names_have_hashes_before_both_are_connected():
    early = assign([("a.b", "t"), ("c", "t")], servers=["a.b", "a_b", "c"])
    late = assign([("a.b", "t"), ("a_b", "t"), ("c", "t")], servers=["a.b", "a_b", "c"])

    assert early.of["a.b", "t"] == late.of["a.b", "t"] == qualify("a.b", "t", 8)
    assert early.of["c", "t"] == "mcp__c__t"


def test_a_name_with_the_prefix_of_another_server_is_never_given():
    servers = ["a", "a__b"]
    alone = assign([("a", "b__c"), ("a", "d")], servers).of
    together = assign([("a", "b__c"), ("a", "d"), ("a__b", "c")], servers).of

    assert alone["a", "b__c"] == together["a", "b__c"] == qualify("a", "b__c", 8)
    assert alone["a", "d"] == "mcp__a__d"
    assert together["a__b", "c"] == "mcp__a__b__c", "it is not renamed because of what another offers"


def test_renamed_tools_are_reported():
    assert assign([("s", "a.b"), ("s", "a_b"), ("s", "c")]).renamed == {("s", "a.b"), ("s", "a_b")}
    assert assign([("s", "a"), ("s", "x" * 100)]).renamed == set()


@given(st.lists(PAIRS, unique=True, min_size=1))
def test_every_name_identifies_one_tool(pairs: list[Pair]):
    names = assign(pairs, servers={server for server, _ in pairs}).of
    back = {name: pair for pair, name in names.items()}

    assert [back[names[pair]] for pair in pairs] == pairs


def doubtful_pair_by_pair(names: Mapping[Any, str], servers: Iterable[str]) -> set[Any]:
    """What `_doubtful` means, said without regard to time."""
    starts = [prefix(server) for server in servers]
    return {
        key
        for key, name in names.items()
        if starts.count(prefix(key[0])) > 1
        or any(
            name.startswith(other) and other.startswith(prefix(key[0])) and other != prefix(key[0])
            for other in starts
        )
    }


PIECES = st.lists(st.sampled_from(["a", "b", "_", "__", ".", "claude.ai ", "x" * 30]), max_size=5).map(
    "".join
)


@given(st.lists(PIECES, max_size=6, unique=True), st.lists(PIECES, max_size=4))
def test_names_with_another_servers_prefix_are_found_as_by_pairwise_comparison(
    servers: list[str], tools: list[str]
):
    names: Any = {(server, tool): qualify(server, tool) for server in servers for tool in tools}
    assert _doubtful(names, servers) == doubtful_pair_by_pair(names, servers)
