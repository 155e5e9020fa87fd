"""T137: no spelling of a path or URL widens an allow rule or avoids a deny rule; other spellings than in
T99."""

from typing import Any

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook

pytestmark = pytest.mark.requirement("PRM-1")


def decided(kind: str, rule: str, **arguments: Any) -> str:
    book = Rulebook.of([("user", "f", PermissionRules(**{kind: (f"mcp__box__get({rule})",)}))])
    assert book.problems == ()
    call = Call(tool="mcp__box__get", server="box", wire_name="get", arguments=arguments)
    return decide(call, book.about(call), "default").behaviour


CLIMBS = (
    "%c0%ae%c0%ae/x",
    "%C0%AE%C0%AE%C0%AFx",
    "%c0%2e./x",
    "%e0%80%ae%e0%80%ae/x",
    "%f0%80%80%ae%f0%80%80%ae/x",
    "%u002e%u002e/x",
    "%25c0%25ae%25c0%25ae/x",
    "a/%25u002e%25u002e/x",
)


@pytest.mark.parametrize("path", CLIMBS)
def test_t137_an_allow_rule_for_a_folder_is_not_left_by_encodings_other_than_utf_8(path: str):
    assert decided("allow", "path=/home/me/*", path=f"/home/me/{path}") == "ask"


@pytest.mark.parametrize("gap", ["a%c0%afb", "a%e0%80%afb", "a%u002fb", "a%U002Fb"])
def test_t137_a_wildcard_within_a_path_matches_no_slash_in_such_an_encoding(gap: str):
    assert decided("allow", "path=/srv/*/notes.txt", path=f"/srv/{gap}/notes.txt") == "ask"


@pytest.mark.parametrize(
    "path", ["notes.txt", "caf%C3%A9.txt", "%E0%A4%95.txt", "%F0%9F%98%80", "100%.txt", "a.u"]
)
def test_t137_readable_paths_are_still_allowed(path: str):
    assert decided("allow", "path=/home/me/*", path=f"/home/me/{path}") == "allow"


@pytest.mark.parametrize(
    "url",
    [
        "https:admin.example.com",
        "HTTPS:admin.example.com",
        " https:admin.example.com",
        "https:me@admin.example.com",
        "https:admin.example.com:443",
        "https:%61dmin.example.com",
        "https:admin.example.com?x",
    ],
)
def test_t137_a_deny_rule_for_a_host_applies_without_slashes(url: str):
    assert decided("deny", "url=https://admin.example.com*", url=url) == "deny"
