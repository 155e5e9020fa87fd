"""Resources and templates as servers list them, and what reading one gives."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from dragoman.catalog.resources import (
    CONTENT_LIMIT,
    TEMPLATE_LIMIT,
    as_listed,
    read_contents,
    read_resource,
    read_template,
)
from dragoman.catalog.texts import DESCRIPTION_LIMIT
from dragoman.content.blocks import ResourceData as Content
from dragoman.errors import InvalidArguments
from dragoman.names import ServerName
from dragoman.wire.codec import Unreadable
from dragoman.wire.uris import URI_LIMIT, WatchedUris

pytestmark = pytest.mark.requirement("CAT-9")
BOX = ServerName("box")


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def template(spelled: str) -> Any:
    return read_template(BOX, raw({"uriTemplate": spelled, "name": "t"}))


def test_a_resource_is_the_definition_of_its_server_cleaned():
    found = read_resource(
        BOX,
        raw(
            {
                "uri": "file:///a b",
                "name": "a\u202eb",
                "title": "A\x1b[31m",
                "description": "x" * 3000,
                "mimeType": "text/plain",
                "size": 7,
                "annotations": {"priority": 1},
                "_meta": {"k": 1},
                "unknown": {},
            }
        ),
    )

    assert (found.server, found.uri, found.name, found.title) == ("box", "file:///a b", "ab", "A")
    assert len(found.description) <= DESCRIPTION_LIMIT + 40
    assert found.description.endswith("more characters]")
    assert (found.mime_type, found.size, found.meta) == ("text/plain", 7, {"k": 1})


def test_invalid_optional_members_are_treated_as_absent():
    odd = {
        "uri": "x:y",
        "name": 7,
        "title": [],
        "description": {},
        "mimeType": 1,
        "size": "big",
        "_meta": 3,
    }
    found = read_resource(BOX, raw(odd))

    assert as_listed(found) == {"server": "box", "uri": "x:y", "name": "x:y"}


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        (None, "no address"),
        ("", "no address"),
        ("  ", "no address"),
        (7, "no address"),
        ("a" * (URI_LIMIT + 1), "longer"),
        ("file:///a\u202eb", "invisible"),
        ("file:///a\nb", "invisible"),
        ("file:///\x1b[2J", "invisible"),
        ("file:///\U000e0041", "invisible"),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_resource_without_a_valid_uri_cannot_be_used(uri: Any, why: str):
    with pytest.raises(Unreadable, match=why):
        read_resource(BOX, raw({"uri": uri, "name": "a"}))


@pytest.mark.parametrize("value", [None, 7, [], "x", True])
def test_a_definition_that_is_not_an_object_cannot_be_used(value: Any):
    for read in (read_resource, read_template):
        with pytest.raises(Unreadable):
            read(BOX, raw(value))


@pytest.mark.parametrize(
    ("spelled", "values", "uri"),
    [
        ("book://{name}", {"name": "a b/c"}, "book://a%20b%2Fc"),
        ("file:///{+path}", {"path": "a/b c"}, "file:///a/b%20c"),
        ("x://{a}{?b,c}", {"a": "1", "c": "3"}, "x://1?c=3"),
        ("x://{a}{?b,c}", {"a": "1"}, "x://1"),
        ("x:/{/list*}", {"list": ["a", "b"]}, "x://a/b"),
        ("x://{name:3}", {"name": "abcdef"}, "x://abc"),
        ("x://fixed", {}, "x://fixed"),
        ("x://{a}/{a}", {"a": "1"}, "x://1/1"),
        ("x://{é}", {"é": "ü"}, "x://%C3%BC"),
    ],
    ids=str,
)
def test_a_template_is_expanded_by_rfc_6570(spelled: str, values: Any, uri: str):
    assert template(spelled).expand(values) == uri


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({}, "needs 'a'"),
        ({"c": "1"}, "needs 'a'"),
        ({"a": "1", "x": "2"}, "no variable 'x'"),
        ({"a": "1" * 9000}, "longer than"),
        ({"a": 1}, "'a' is not text"),
        ({"a": None}, "'a' is not text"),
        ({"a": ["1", 2]}, "'a' is not text"),
        ({"a": {"k": "v"}}, "'a' is not text"),
        ({"a": "\ud800"}, "'a' is not text"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_missing_and_unexpected_variables_are_named(values: Any, why: str):
    with pytest.raises(InvalidArguments, match=why):
        template("x://{a}{?c}").expand(values)


@pytest.mark.parametrize(
    "spelled",
    [
        "",
        "{a" * 3000,
        "x" * (TEMPLATE_LIMIT + 1),
        "".join(f"{{a{number}}}" for number in range(51)),
        "{" + ",".join(f"a{number}" for number in range(51)) + "}",
        "x://{a:many}",
        "x://{a b}",
        "x://{a{b}",
        "x://{,}",
        "x://{a\u200b}",
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_hostile_template_is_not_used(spelled: str):
    with pytest.raises(Unreadable):
        template(spelled)


@given(st.text(max_size=200), st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3))
def test_any_template_is_refused_or_can_be_expanded(spelled: str, more: dict[str, str]):
    try:
        found = template(spelled)
    except Unreadable:
        return
    assert isinstance(found.expand(dict.fromkeys(found.variables, "v")), str)
    try:
        found.expand(more)
    except InvalidArguments:
        pass


def test_reading_gives_parts_and_an_invalid_one_is_left_out_alone():
    kind, reply = read_contents(
        raw(
            {
                "contents": [
                    {"uri": "a", "text": ""},
                    {"uri": "b", "blob": "AA==", "mimeType": "x/y"},
                    {"uri": "c"},
                    {"text": "no uri"},
                    7,
                ],
                "ttlMs": 1000,
            }
        )
    )

    assert (kind, reply.ttl_seconds) == ("complete", 1.0)
    assert reply.contents == (Content("a", text=""), Content("b", "x/y", blob="AA=="))
    assert [problem[:6] for problem in reply.problems] == ["part 3", "part 4", "part 5"]


def test_an_empty_resource_is_distinguished_from_a_missing_one():
    assert read_contents(raw({"contents": []}))[1].contents == ()
    for reply in ({}, {"contents": None}, {"contents": 7}, []):
        with pytest.raises(Unreadable):
            read_contents(raw(reply))


def test_at_most_a_thousand_parts_are_read():
    _, reply = read_contents(raw({"contents": [{"uri": "a", "text": "x"}] * (CONTENT_LIMIT + 5)}))

    assert len(reply.contents) == CONTENT_LIMIT
    assert "more than" in reply.problems[0]


@pytest.mark.parametrize(
    ("uri", "whole", "is_part"),
    [
        ("x://a", "x://a", True),
        ("x://a/b", "x://a", True),
        ("x://a/b", "x://a/", True),
        ("x://a?page=1", "x://a", True),
        ("x://a#top", "x://a", True),
        ("x://ab", "x://a", False),
        ("x://", "x://a", False),
        ("y://a/b", "x://a", False),
        ("x://a", "x://a/", False),
        ("x://a/", "x://a/", True),
        ("x://a//", "x://a///", True),
        ("/a", "/", True),
    ],
)
def test_a_uri_below_another_is_a_sub_resource(uri: str, whole: str, is_part: bool):
    watched = WatchedUris()
    watched.add(whole)
    assert watched.found_for(uri) == ({whole} if is_part else set())


def test_an_update_also_concerns_the_resources_above():
    watched = WatchedUris()
    for uri in ("x://a", "x://a/", "x://a/b", "x://a/b/c", "x://b"):
        watched.add(uri)
    assert watched.found_for("x://a/b?page=1") == {"x://a", "x://a/", "x://a/b"}
    watched.discard("x://a")
    watched.discard("x://a")
    watched.discard("x://never")
    assert watched.found_for("x://a/b?page=1") == {"x://a/", "x://a/b"}
    watched.discard("x://a/")
    watched.discard("x://a/b")
    assert watched.found_for("x://a/b?page=1") == set()


@pytest.mark.parametrize(
    ("spelled", "fits", "does_not"),
    [
        ("x:a", ["x:a"], ["x:b", "x:ab", ""]),
        ("x:{a}", ["x:1", "x:%2F"], ["x:", "x:1/2", "x:1?q", "y:1"]),
        ("x:{a}/{b}.txt", ["x:1/2.txt", "x:1/2.txt.txt"], ["x:1/.txt", "x:1/2.txt/", "x:1/2/3.txt"]),
        ("x:{+path}", ["x:a/b?c#d", "x:line\nbreak"], ["x:", "y:a"]),
        ("x:{a}{?page}", ["x:1", "x:1?page=2"], ["x:"]),
        ("x:{/path*}", ["x:", "x:/a/b"], ["y:/a"]),
        ("x:.*", ["x:.*"], ["x:aa"]),
        ("x:{a,b}-{c}", ["x:1,2-3", "x:1-2-3"], ["x:1,2"]),
    ],
)
def test_a_template_matches_what_it_can_be_expanded_to(spelled: str, fits: list[str], does_not: list[str]):
    found = template(spelled)

    assert [uri for uri in (*fits, *does_not) if found.matches(uri)] == fits


def test_a_hostile_template_is_matched_without_backtracking():
    found = template("x:" + "".join(f"{{+a{number}}}a" for number in range(50)) + "b")

    assert not found.matches("x:" + "a" * URI_LIMIT)
