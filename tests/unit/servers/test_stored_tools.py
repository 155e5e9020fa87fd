"""The tool lists of lazy servers, kept between runs."""

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import Raw

from dragoman import paths
from dragoman.catalog.listing import ToolList
from dragoman.catalog.tools import ServerTool
from dragoman.names import QualifiedName, ServerName
from dragoman.servers import stored_tools
from dragoman.servers.stored_tools import load, store
from dragoman.wire.messages import ToolDefinition
from tests.unit.fakes import definition

pytestmark = pytest.mark.requirement("LIF-11")

PRINT = "0123abcd"


def file() -> Path:
    return paths.state_dir() / "tools" / f"{PRINT}.json"


def write(content: bytes) -> None:
    file().parent.mkdir(parents=True, exist_ok=True)
    file().write_bytes(content)


def seen(given: ToolDefinition) -> tuple[Any, ...]:
    """A tool as it is shown."""
    tool = ServerTool(ServerName("box"), QualifiedName("x"), given)
    return (
        tool.wire_name,
        tool.title,
        tool.description,
        tool.input_schema,
        tool.output_schema,
        dict(tool.annotations),
        dict(tool.meta),
    )


def test_an_unknown_entry_has_no_stored_tools():
    assert load(PRINT) is None


@pytest.mark.parametrize(
    "given",
    [
        definition("open"),
        definition(
            "öffnen", {"type": "object", "properties": {"n": {"type": "integer"}}}, description="😀 é"
        ),
        definition("titled", title="A title", annotations={"readOnlyHint": True, "title": "x"}),
        definition("out", output_schema=Raw(b'{"type":"object"}')),
        definition("meta", meta={"k": [1, {"a": None}]}),
    ],
    ids=lambda given: given.name,
)
def test_a_stored_list_is_read_back_unchanged(given: ToolDefinition):
    store(PRINT, ToolList((given, definition("another"))))
    known = load(PRINT)

    assert known is not None
    assert known.problems == ()
    assert [seen(each) for each in known.items] == [seen(given), seen(definition("another"))]


def test_the_last_list_applies_and_entries_are_distinguished():
    store(PRINT, ToolList((definition("a"),)))
    store(PRINT, ToolList((definition("b"),)))
    store("other", ToolList((definition("c"),)))
    known = load(PRINT)

    assert known is not None
    assert [each.name for each in known.items] == ["b"]


def test_an_empty_list_is_treated_as_missing():
    store(PRINT, ToolList((definition("a"),)))
    store(PRINT, ToolList())

    assert load(PRINT) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"null", b"{}", b"7", b"[", b"\xff\xfe", b'[{"name":"a"', b"[]", b"[7, null]", b"\x00" * 1000],
    ids=repr,
)
def test_a_damaged_file_is_treated_as_missing(content: bytes):
    write(content)

    assert load(PRINT) is None


def test_the_content_of_the_file_is_validated_like_a_servers_list():
    good = {"name": "good", "inputSchema": {"type": "object"}}
    write(json.dumps([good, {"name": ""}, {"name": "bad", "inputSchema": 7}, 7]).encode())
    known = load(PRINT)

    assert known is not None
    assert [each.name for each in known.items] == ["good"]
    assert known.problems


def test_a_file_that_is_too_large_is_ignored(monkeypatch: pytest.MonkeyPatch):
    store(PRINT, ToolList((definition("a"),)))
    monkeypatch.setattr(stored_tools, "LIMIT_BYTES", 10)

    assert load(PRINT) is None


def test_a_list_that_is_too_large_is_not_stored_and_the_last_one_stays(monkeypatch: pytest.MonkeyPatch):
    store(PRINT, ToolList((definition("a"),)))
    monkeypatch.setattr(stored_tools, "LIMIT_BYTES", 500)
    store(PRINT, ToolList((definition("b", description="x" * 1000),)))
    known = load(PRINT)

    assert known is not None
    assert [each.name for each in known.items] == ["a"]


def test_a_location_that_cannot_be_written_has_no_other_effect():
    paths.state_dir().mkdir(parents=True, exist_ok=True)
    (paths.state_dir() / "tools").write_text("in the way")
    store(PRINT, ToolList((definition("a"),)))

    assert load(PRINT) is None


def test_only_the_owner_can_read_it_and_no_other_file_remains():
    store(PRINT, ToolList((definition("a"),)))

    assert file().parent.stat().st_mode & 0o077 == 0
    assert [each.name for each in file().parent.iterdir()] == [file().name]
