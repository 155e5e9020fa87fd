"""Which tools are shown at once."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.catalog.deferral import Budget, divide
from dragoman.catalog.naming import qualify
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import ServerTool
from dragoman.names import ServerName
from tests.unit.fakes import definition

ALWAYS = {"anthropic/alwaysLoad": True}
DEFER = {"anthropic/deferLoading": True}


def tool(name: str, meta: dict[str, Any] | None = None, words: int = 0) -> ServerTool:
    described = definition(name, description="word " * words, meta=meta)
    return ServerTool(ServerName("box"), qualify("box", name), described)


ONE = cost_of(tool("a"))
"""What a tool without a description costs."""


def budget(tools: float, *, percent: int = 10) -> Budget:
    """Room for so many small tools in the share."""
    return Budget(context_tokens=int(tools * ONE * 100 / percent) + 1, share_percent=percent)


def names(tools: Sequence[Any]) -> str:
    return " ".join(tool.definition.name for tool in tools)


@pytest.mark.requirement("CAT-7")
@pytest.mark.parametrize(
    ("tools", "room", "shown", "deferred"),
    [
        pytest.param("a b c", budget(3), "a b c", "", id="all fit"),
        pytest.param("a b c", budget(2.9), "", "a b c", id="they do not fit: none is preferred"),
        pytest.param("a b! c", budget(2.9), "b", "a c", id="one asks to be shown"),
        pytest.param("a b? c", budget(3), "a c", "b", id="one asks to be found"),
        pytest.param("a b? c", budget(2), "a c", "b", id="one that waits takes no room"),
        pytest.param("a b!? c", budget(3), "a b c", "", id="one asks for both: shown"),
        pytest.param("a! b! c!", budget(2), "a b", "c", id="wishes have a limit"),
        pytest.param("a b! c", Budget(100_000, 0), "b", "a c", id="0: always"),
        pytest.param("a b? c", Budget(10, 100), "a c", "b", id="100: never, unless asked for"),
        pytest.param("a! b! c", Budget(10, 100), "a b c", "", id="100: no limit for wishes"),
        pytest.param("a b", Budget(10, 250), "a b", "", id="more than 100 is 100"),
        pytest.param("", budget(1), "", "", id="nothing"),
    ],
)
def test_which_tools_are_loaded_at_once(tools: str, room: Budget, shown: str, deferred: str):
    """`!` asks to be shown, `?` to be found."""
    given = [
        tool(word.rstrip("!?"), {**(ALWAYS if "!" in word else {}), **(DEFER if "?" in word else {})})
        for word in tools.split()
    ]
    divided = divide(given, room)
    assert (names(divided.shown), names(divided.deferred)) == (shown, deferred)


@pytest.mark.requirement("CAT-7")
def test_new_tools_are_deferred_if_all_together_exceed_the_budget():
    divided = divide([tool("c")], budget(2.9), shown=[tool("a"), tool("b")])
    assert names(divided.deferred) == "c"


def test_earlier_deferred_tools_are_counted():
    assert names(divide([tool("c")], budget(2), deferred=[tool("a"), tool("b")]).deferred) == "c"
    assert names(divide([tool("c")], budget(2), deferred=[tool("a"), tool("b", DEFER)]).shown) == "c"


def test_earlier_requested_tools_are_counted():
    granted = [tool("a", ALWAYS), tool("b", ALWAYS)]
    assert names(divide([tool("c", ALWAYS)], budget(2), shown=granted).deferred) == "c"


def test_one_requested_tool_that_is_too_large_does_not_affect_the_others():
    divided = divide([tool("a", ALWAYS, words=1000), tool("b", ALWAYS)], budget(2))
    assert (names(divided.shown), names(divided.deferred)) == ("b", "a")


@pytest.mark.requirement("CAT-7")
@given(
    st.lists(st.tuples(st.sampled_from([None, ALWAYS, DEFER]), st.integers(0, 50)), max_size=12),
    st.integers(0, 2000),
    st.integers(0, 99),
)
def test_loaded_tools_never_exceed_the_budget(
    given: list[tuple[dict[str, Any] | None, int]], context: int, percent: int
):
    tools = [tool(f"t{number}", meta, words) for number, (meta, words) in enumerate(given)]
    room = Budget(context, percent)
    divided = divide(tools, room)
    assert sorted(names([*divided.shown, *divided.deferred])) == sorted(names(tools))
    assert sum(map(cost_of, divided.shown)) <= max(room.tokens, room.always_loaded_tokens)
    assert not any(one.defers for one in divided.shown)
