"""T97: Results are sanitized for a model: without invisible text. With `raw=True` they are unchanged."""

from typing import Any

import pytest

from dragoman import Host
from dragoman.catalog.texts import DESCRIPTION_LIMIT
from dragoman.cleaning import CUT_NOTE_LENGTH
from dragoman.testing import InMemoryServer
from tests.torture.test_t42_hidden_text import CLEANED, TRICKS
from tests.torture.test_t98_secrets_repeated_by_servers import text

pytestmark = pytest.mark.requirement("CAT-2")

tricks = pytest.mark.parametrize(
    ("trick", "cleaned"), [(TRICKS[name], CLEANED[name]) for name in TRICKS], ids=TRICKS.keys()
)
LONG = "plain text, line by line\n" * 8000


def answering(result: Any) -> dict[str, Any]:
    server = InMemoryServer("s")
    server.add_tool("t", lambda _arguments, _context: result)
    return {"s": server}


async def outcomes(result: Any, **options: Any) -> list[Any]:
    """The outcomes of the same call, made by a host and by a toolbox."""
    async with Host(answering(result), permission_mode="bypassPermissions") as host:
        await host.ready()
        if options:
            return [await host.call("mcp__s__t", **options)]
        return [await host.call("mcp__s__t"), await host.toolbox().call("mcp__s__t")]


SHAPES: dict[str, Any] = {
    "text": lambda said: {"content": [text(f"a{said}b")]},
    "an error": lambda said: {"content": [text(f"a{said}b")], "isError": True},
}


@tricks
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
async def test_t97_invisible_text_does_not_reach_a_model(trick: str, cleaned: str, shape: Any):
    for outcome in await outcomes(shape(trick)):
        assert outcome.text == f"a{cleaned}b"
        assert [block.as_text() for block in outcome.content] == [f"a{cleaned}b"]
    (raw,) = await outcomes(shape(trick), raw=True)
    assert raw.text == f"a{trick}b"


@tricks
async def test_t97_the_text_of_a_resource_is_sanitized(trick: str, cleaned: str):
    resource = {"uri": "x:y", "text": f"a{trick}b"}
    for outcome in await outcomes({"content": [{"type": "resource", "resource": resource}]}):
        assert outcome.text == f"[resource x:y]\na{cleaned}b"


@tricks
async def test_t97_structured_content_is_sanitized_including_names(trick: str, cleaned: str):
    value = {"x": [f"a{trick}b", 7, None], f"k{trick}": {"y": f"{trick}"}}
    for outcome in await outcomes({"content": [], "structuredContent": value}):
        assert outcome.structured == {"x": [f"a{cleaned}b", 7, None], f"k{cleaned}": {"y": cleaned}}
        assert outcome.structured_content == outcome.structured
        assert f"a{cleaned}b" in outcome.text
        assert trick not in outcome.text
    (raw,) = await outcomes({"content": [], "structuredContent": value}, raw=True)
    assert raw.structured == value


async def test_t97_two_similar_names_remain_two():
    (outcome, _) = await outcomes({"content": [], "structuredContent": {"k": 1, "k\u200b": 2}})
    assert outcome.structured == {"k": 1, "k\\u200b": 2}


@tricks
async def test_t97_a_large_result_is_sanitized_where_it_is_shown(trick: str, cleaned: str):
    said = f"begin{trick}!\n{LONG}\nend{trick}!"
    for outcome in await outcomes({"content": [text(said)]}):
        assert outcome.text.partition("\n")[0] == f"begin{cleaned}!"
        assert outcome.text.rpartition("\n")[2] == f"end{cleaned}!"
        (saved,) = outcome.saved
        assert saved.path.read_text() == said, "the file holds what was sent"
    (raw,) = await outcomes({"content": [text(said)]}, raw=True)
    assert raw.text == said


async def test_t97_a_part_read_from_a_saved_result_is_sanitized():
    said = f"{LONG}\nhid\u200bden\u202e words\n{LONG}"
    async with Host(answering(said), permission_mode="bypassPermissions") as host:
        await host.ready()
        box = host.toolbox()
        (saved,) = (await box.call("mcp__s__t")).saved
        found = await box.call("read_result", {"handle": saved.handle, "grep": "words"})
    assert found.text.splitlines()[0].endswith("hidden words")


@tricks
async def test_t97_large_structured_content_is_sanitized_when_it_is_decoded(trick: str, cleaned: str):
    value = {"rows": ["x" * 100] * 3000, "last": f"a{trick}b"}
    (outcome, _) = await outcomes({"content": [], "structuredContent": value})
    assert outcome.structured == {**value, "last": f"a{cleaned}b"}
    (raw,) = await outcomes({"content": [], "structuredContent": value}, raw=True)
    assert raw.structured == value


async def test_t97_ordinary_text_is_not_changed():
    said = "tab\there\nand a line\n\u00e9\u4f60\u597d \U0001f50d \u0915\u094d\u0937\n"
    (outcome, _) = await outcomes(said)
    assert outcome.text == said


@tricks
async def test_t97_instructions_of_a_server_are_sanitized_and_truncated(trick: str, cleaned: str):
    server = InMemoryServer("s", instructions=f"  Use{trick} me. " + "x" * 5000)
    async with Host({"s": server}) as host:
        await host.ready()
        said = host.instructions()["s"]
    whole, kept = f"  Use{cleaned} me. " + "x" * 5000, DESCRIPTION_LIMIT - CUT_NOTE_LENGTH
    assert said == f"{whole[:kept].strip()}… [{len(whole) - kept} more characters]"
