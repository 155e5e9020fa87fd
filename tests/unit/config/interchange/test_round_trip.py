"""What is written and read again is the same, up to what the notes announce."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.config.interchange.formats import FORMATS, Note, read, write

pytestmark = pytest.mark.slow

TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(
        ["${TOKEN}", "a${TOKEN}b", "${X:-y}", "$HOME", "${env:X}", "${input:x}", "${WORKSPACE_FOLDER:-.}/x"]
    ),
)
WORDS = st.text(min_size=1, max_size=8)
KEYS = st.sampled_from(["TOKEN", "MODE", "X", "A b", "é"])
TOOLS = st.lists(WORDS, max_size=3)
SHARED: dict[str, Any] = {
    "timeout": st.integers(1, 10**9),
    "enabledTools": TOOLS,
    "disabledTools": TOOLS,
    "protocol": st.sampled_from(["auto", "legacy"]),
    "xOdd": st.one_of(st.integers(), WORDS),
}
PROGRAMS = st.fixed_dictionaries(
    {"command": st.one_of(WORDS, st.just("${CMD}"))},
    optional={
        "type": st.just("stdio"),
        "args": st.lists(TEXTS, max_size=4),
        "env": st.dictionaries(KEYS, TEXTS, max_size=4),
        "cwd": TEXTS,
        **SHARED,
    },
)
REMOTES = st.fixed_dictionaries(
    {"url": st.sampled_from(["https://x/mcp", "https://x/sse", "http://l:1/${P}", "${BASE}/mcp"])},
    optional={
        "type": st.sampled_from(["http", "sse", "ws"]),
        "headers": st.dictionaries(st.sampled_from(["Authorization", "X-A", "X-B"]), TEXTS, max_size=3),
        "headersHelper": WORDS,
        "oauth": st.fixed_dictionaries(
            {},
            optional={
                "clientId": TEXTS,
                "clientSecret": TEXTS,
                "callbackPort": st.integers(1, 65535),
                "scopes": st.one_of(st.lists(st.sampled_from(["a", "b:c"]), min_size=1), st.just("a b")),
                "xaa": st.booleans(),
            },
        ),
        **SHARED,
    },
)
SERVERS = st.dictionaries(
    st.text(alphabet="abcXYZ09_-", min_size=1, max_size=6), st.one_of(PROGRAMS, REMOTES), max_size=4
)


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("key", list(FORMATS))
@settings(max_examples=40)
@given(servers=SERVERS)
def test_an_export_is_imported_unchanged_except_for_the_reported_losses(key: str, servers: dict[str, Any]):
    written = write(key, None, servers, source="f")
    back = read(key, written.text, source="f")
    assert tuple(back.servers) == written.written
    assert back.disabled == ()
    for name, entry in servers.items():
        noted = [note for note in (*written.notes, *back.notes) if note.server == name]
        if name not in back.servers:
            assert noted
        else:
            assert plain(back.servers[name], noted) == plain(entry, noted)


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("key", list(FORMATS))
@settings(max_examples=40)
@given(servers=SERVERS)
def test_writing_twice_changes_nothing(key: str, servers: dict[str, Any]):
    once = write(key, None, servers, source="f")
    twice = write(key, once.text, servers, source="f", replace=list(servers))
    assert twice.text == once.text
    assert (twice.written, twice.unchanged, twice.conflicts) == ((), once.written, ())


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("key", list(FORMATS))
@settings(max_examples=40)
@given(servers=SERVERS)
def test_writing_one_by_one_equals_writing_all_at_once(key: str, servers: dict[str, Any]):
    text: str | None = None
    for name, entry in servers.items():
        text = write(key, text, {name: entry}, source="f").text
    at_once = write(key, None, servers, source="f").text
    assert read(key, text or "", source="f").servers == read(key, at_once, source="f").servers


def plain(entry: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    """The entry without what was noted, what is implied, and what says nothing."""
    flat: dict[str, Any] = {"type": "stdio" if "command" in entry else "http"}
    for field, value in entry.items():
        if field == "oauth":
            flat |= {f"oauth.{name}": inner for name, inner in value.items() if inner not in (False, "")}
        elif field in ("env", "headers"):
            flat |= {f"{field}.{name}": inner for name, inner in value.items()}
        elif field == "enabledTools" or (value not in ([], "") and (field, value) != ("protocol", "auto")):
            flat[field] = value
    if isinstance(scopes := flat.get("oauth.scopes"), str):
        flat["oauth.scopes"] = scopes.split()
    return {field: value for field, value in flat.items() if not is_noted(field, notes)}


THEIR_NAMES = {"serverUrl": "url", "httpUrl": "url", "auth": "oauth"}


def is_noted(field: str, notes: list[Note]) -> bool:
    """A note about `args[1]` concerns `args`, one about `oauth` all that is in it."""
    for note in notes:
        told = note.field or ""
        top, _, rest = told.partition(".")
        top = THEIR_NAMES.get(top.split("[")[0], top.split("[")[0])
        if field in (top, f"{top}.{rest}") or (not rest and field.startswith(f"{top}.")):
            return True
    return False
