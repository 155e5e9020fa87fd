"""T99: Spellings of hosts, white space, names and paths that an allow must not accept or a deny must not
miss."""

from typing import Any

import pytest

from dragoman.config.schema import PermissionRules
from dragoman.permissions.decide import decide
from dragoman.permissions.rules import Call, Rulebook


def decided(rules: PermissionRules, *, tool: str = "fetch", **arguments: Any) -> str:
    call = Call(tool=f"mcp__web__{tool}", server="web", wire_name=tool, arguments=arguments)
    return decide(call, Rulebook.of([("user", "settings", rules)]).rules, "default").behaviour


def allows(pattern: str) -> PermissionRules:
    return PermissionRules(allow=(f'mcp__web__fetch(url="{pattern}")',))


def denies(condition: str) -> PermissionRules:
    return PermissionRules(allow=("mcp__web",), deny=(f"mcp__web__fetch({condition})",))


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://*.example.com/*", "https://evil.org:443.example.com/"),
        ("https://*.example.com/*", "https://evil.org:443%2e.example.com/"),
        ("https://*.example.com/*", "https://evil.org;.example.com/"),
        ("https://*.example.com/*", "https://evil.org .example.com/"),
        ("https://*.example.com/*", "https://evil.org%3a80.example.com/"),
        ("https://*.example.com/*", "https://evil.org,.example.com/"),
        ("*://*.example.com/*", "https://evil.org:443.example.com/"),
        ("https://api.example.com*", "https://api.example.com.evil.org/"),
        ("https://api.example.com*", "https://api.example.com@evil.org/"),
        ("https://api.example.com*", "https://api.example.com:x@evil.org/"),
        ("https://*.example.com*", "https://a.example.com.evil.org/"),
        ("*.example.com", "evil.org:443.example.com"),
    ],
)
def test_an_allow_for_a_host_matches_no_other_host(pattern: str, url: str):
    assert decided(allows(pattern), url=url) == "ask"


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("https://*.example.com/*", "https://a.b.example.com/x?y=1:2"),
        ("https://api.example.com*", "https://api.example.com"),
        ("https://api.example.com*", "https://api.example.com/x:y@z"),
        ("https://api.example.com*", "https://api.example.com:8443/x"),
        ("https://*", "https://anything.org:1/x"),
        ("https://example.com/*/raw", "https://example.com/a b/raw"),
    ],
)
def test_an_allow_for_a_host_still_matches_its_urls(pattern: str, url: str):
    assert decided(allows(pattern), url=url) == "allow"


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize(
    "text",
    [
        "drop table users",
        "DROP  TABLE users",
        "x; drop\ntable users",
        "drop\t \r\n table",
        "drop\u00a0table",
        "drop\u2003\u2003table",
        "drop\u200b table",
        "drop\u3164 table",
    ],
)
def test_a_deny_treats_any_run_of_white_space_as_one_space(text: str):
    assert decided(denies("sql=*drop table*"), sql=text) == "deny"
    assert decided(denies('sql="*drop  table*"'), sql=text) == "deny"


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize(
    "name",
    [
        "fetch ",
        " fetch",
        "fetch\u00a0",
        "fetch\t",
        "fetch\n",
        "fetch\u3164",
        "fetch\u2800",
        "fetch\x00",
        "fe\x7ftch",
        "fetch\ufe00",
        "FETCH ",
        "\uff46etch",
    ],
    ids=ascii,
)
@pytest.mark.parametrize("rule", ["mcp__web__fetch", "mcp__web__f*h"])
def test_white_space_or_an_invisible_character_in_a_name_avoids_no_deny(name: str, rule: str):
    assert decided(PermissionRules(allow=("mcp__web",), deny=(rule,)), tool=name) == "deny"


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize(
    "url",
    [
        "https://x.org/admin",
        "https://x.org//admin",
        "https://x.org/%2Fadmin",
        "https://x.org/%2fadmin",
        "https://x.org/a/../admin",
        "https://x.org/a/%2e%2e/admin",
        "https://x.org/./admin",
        "https://x.org/a/..;/admin",
        "https://x.org/%61dmin",
        "https://x.org/%2561dmin",
        "https:\\\\x.org\\admin",
        "https:/x.org/admin",
        "https://x.org:443/admin",
        "https://x.org./admin",
        "https://me@x.org/admin",
        "HTTPS://X.ORG//ADMIN",
        " https://x.org/admin",
    ],
)
def test_a_deny_for_a_path_of_a_url_matches_every_spelling(url: str):
    assert decided(denies("url=https://x.org/admin*"), url=url) == "deny"


@pytest.mark.parametrize(
    "path",
    ["/admin", "//admin", "/%2Fadmin", "%2Fadmin", "%2f%2fadmin", "/./admin", "/a/../admin", "\\admin"],
)
def test_a_deny_for_a_path_matches_every_spelling(path: str):
    assert decided(denies("url=/admin*"), url=path) == "deny"


@pytest.mark.parametrize("url", ["http://2130706433/x", "http://127.1/x", "http://0x7f000001/x"])
def test_a_deny_for_an_address_matches_every_spelling(url: str):
    assert decided(denies("url=http://127.0.0.1/*"), url=url) == "deny"


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/passwd",
        "file:/etc/passwd",
        "file:////etc/passwd",
        "file://localhost/etc/passwd",
        "file:///tmp/../etc/passwd",
        "file:///./etc/passwd",
        "file:\\\\\\etc\\passwd",
        "FILE:///ETC/passwd",
    ],
)
def test_a_deny_for_a_file_matches_every_spelling(uri: str):
    assert decided(denies("url=file:///etc/*"), url=uri) == "deny"


@pytest.mark.parametrize(
    "text",
    [
        "drop\rtable \u00e9",
        "drop\ftable \u00e9",
        "drop\vtable \u00e9",
        "drop\x85table",
        "drop\u2028table",
        "dr\x00op table",
    ],
    ids=ascii,
)
def test_white_space_control_characters_count_as_white_space(text: str):
    assert decided(denies("sql=*drop table*"), sql=text) == "deny"


@pytest.mark.parametrize(
    "url",
    [
        "https://inter\tnal.example.com/x",
        "https://inter\nnal.example.com/x",
        "\x01https://internal.example.com/x",
        "https://internal.example.com:/x",
        "https:/internal.example.com/x",
    ],
    ids=ascii,
)
def test_characters_that_url_parsers_drop_do_not_hide_a_host(url: str):
    assert decided(denies("url=https://internal.example.com/*"), url=url) == "deny"


@pytest.mark.parametrize(
    ("pattern", "url"),
    [
        ("/home/me/project/*", "/home/me/project/a\n/etc/passwd"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/.\x00./x"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/.%00./x"),
        ("https://api.example.com/v1/*", "https://api.example.com/v1/.\u200b./x"),
    ],
)
def test_an_allow_matches_no_control_or_invisible_character(pattern: str, url: str):
    assert decided(allows(pattern), url=url) == "ask"
