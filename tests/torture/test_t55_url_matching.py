"""The decision about a URL is made for the host that is actually connected to."""

from fnmatch import fnmatchcase
from urllib.parse import urlsplit

import pytest
import yarl
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.policy import Policy, PolicySubject, judge
from dragoman.config.policy_files import PolicyPart, gather
from dragoman.errors import ConfigError
from dragoman.urls import matches, parse_pattern, parse_url

PATTERNS = {
    "A": "https://mcp.example.com/*",
    "B": "https://*.example.com/*",
    "C": "*://mcp.example.com/*",
    "D": "https://mcp.example.com",
}

# The written URL → the connected host (None: refused) and the patterns that admit it.
VECTORS: dict[str, tuple[str | None, str]] = {
    "https://mcp.example.com/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com/mcp?x=1": ("https://mcp.example.com/mcp?x=1", "ABCD"),
    "http://mcp.example.com/": ("http://mcp.example.com/", "C"),
    "wss://mcp.example.com/": ("wss://mcp.example.com/", "C"),
    "https://other.example.com/": ("https://other.example.com/", "B"),
    "https://a.b.example.com/": ("https://a.b.example.com/", "B"),
    "https://example.com/": ("https://example.com/", ""),
    # another host that looks like the allowed one
    "https://mcp.example.com@evil.com/": (None, ""),
    "https://mcp.example.com:443@evil.com/": (None, ""),
    "https://mcp.example.com%40evil.com/": (None, ""),
    "https://mcp.example.com\\@evil.com/": (None, ""),
    "https://evil.com\\@mcp.example.com/": (None, ""),
    "https://evil.com\\.example.com/": (None, ""),
    "https://evil.com#@mcp.example.com/": ("https://evil.com/", ""),
    "https://evil.com?@mcp.example.com/": ("https://evil.com/?@mcp.example.com/", ""),
    "https://evil.com?.example.com/": ("https://evil.com/?.example.com/", ""),
    "https://evil.com/.example.com/": ("https://evil.com/.example.com/", ""),
    "https://mcp.example.com.evil.com/": ("https://mcp.example.com.evil.com/", ""),
    "https://mcp.example.com%2eevil.com/": (None, ""),
    "https://evil.com%2f.example.com/": (None, ""),
    "https://evil.com%00.example.com/": (None, ""),
    "https://mcp.example.com。evil.com/": ("https://mcp.example.com.evil.com/", ""),
    "https://evil.com／.example.com/": (None, ""),
    "https://evil.com＃.example.com/": (None, ""),
    "https://evil.com？.example.com/": (None, ""),
    "https://mcp.example.com：443.evil.com/": (None, ""),
    "https://evil.com/https://mcp.example.com/": ("https://evil.com/https://mcp.example.com/", ""),
    "https://evilexample.com/": ("https://evilexample.com/", ""),
    "https://mcp.exаmple.com/": ("https://mcp.xn--exmple-4nf.com/", ""),  # Cyrillic а
    "https://mcp.example.сom/": ("https://mcp.example.xn--om-nmc/", ""),  # Cyrillic с
    "https://mсp.example.com/": ("https://xn--mp-omc.example.com/", "B"),  # actually below example.com
    "https://mcp.example.com.:443.evil.com/": (None, ""),
    "https:///evil.com": (None, ""),
    "https:evil.com": (None, ""),
    "https:/mcp.example.com/": (None, ""),
    "//mcp.example.com/": (None, ""),
    "https://.example.com/": (None, ""),
    "https://[mcp.example.com]/": (None, ""),
    "https://mcp.example.com:8443/": ("https://mcp.example.com:8443/", ""),
    "https://mcp.example.com:80/": ("https://mcp.example.com:80/", ""),
    "http://mcp.example.com:443/": ("http://mcp.example.com:443/", ""),
    "https://mcp.example.com:443:80/": (None, ""),
    # the allowed host, in unusual spellings
    "https://mcp。example。com/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp．example｡com/": ("https://mcp.example.com/", "ABCD"),
    "https://ｍｃｐ.ⓔⓧⓐⓜⓟⓛⓔ.com/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com./": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com../": (None, ""),
    "HTTPS://MCP.EXAMPLE.COM/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com:443/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.example.com:00443/": ("https://mcp.example.com/", "ABCD"),
    "https://mcp.exam\tple.com/": (None, ""),
    "https://mcp.exam\nple.com/": (None, ""),
    "ht\ntps://mcp.example.com/": (None, ""),
    " https://mcp.example.com/": (None, ""),
    "https://mcp.exam\u00adple.com/": (None, ""),
    "https://mcp.exam\u200bple.com/": (None, ""),
    "https://mcp.example.com/a/../../b": ("https://mcp.example.com/b", "ABCD"),
    "https://mcp.example.com/%2e%2e/b": ("https://mcp.example.com/b", "ABCD"),
    "https://mcp.example.com/..%2f..%2fb": (None, ""),
    "https://mcp.example.com//evil.com/": ("https://mcp.example.com//evil.com/", "ABCD"),
    "https://mcp.example.com/\\evil.com": (None, ""),
}


def connected(written: str) -> str | None:
    try:
        return str(parse_url(written))
    except ConfigError:
        return None


def admitted_by(written: str, **lists: list[dict[str, str]]) -> bool:
    policy = gather([PolicyPart(scope="enterprise", source="managed", **lists)])
    return is_admitted(policy, written)


def is_admitted(policy: Policy, written: str) -> bool:
    """As in a host: a URL that cannot be parsed is not connected."""
    if connected(written) is None:
        return False
    subject = PolicySubject(name="box", scope="user", transport="http", url=parse_url(written))
    return judge(policy, subject).allowed


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(("written", "expected"), VECTORS.items(), ids=map(ascii, VECTORS))
def test_t55_the_decision_is_about_the_host_that_is_connected_to(
    written: str, expected: tuple[str | None, str]
):
    host, letters = expected
    assert connected(written) == host
    found = [key for key, text in PATTERNS.items() if admitted_by(written, allowed=[{"serverUrl": text}])]
    assert "".join(found) == letters
    if host is not None:
        assert str(yarl.URL(host)) == host


DISGUISES = {
    "https://evil.com": [
        "https://evil.com", "https://EVIL.com", "https://evil.com.", "https://evil.com:443", "https://evil.com:8443/x",
        "https://evil。com/", "https://ｅvil.com/", "https://ⓔⓥⓘⓛ.com/", "https://evil.com?", "https://evil.com#@good.com/",
        "https://good.com@evil.com/", "https://evil.com/../good", "https://good.com\\@evil.com/", "https://e\u00advil.com/",
        "https://evil.com/%2e", "https://evi%6c.com/", "https://evil.com\t/", "https://evil。com。", "https://ℯvil.com/",
    ],
    "http://127.0.0.1": [
        "http://127.0.0.1", "http://127.0.0.1.", "http://127.1", "http://127.0.1:9", "http://2130706433", "http://0x7f000001",
        "http://0x7f.1", "http://0177.0.0.1", "http://017700000001", "http://①②⑦.0.0.①", "http://127。0。0。1",
        "http://[::ffff:127.0.0.1]", "http://[::FFFF:7F00:0001]", "http://[0:0:0:0:0:ffff:127.0.0.1]:81/", "http://１２７.1",
        "http://0000177.0.0.1", "http://127.0.0x1",
    ],
    "https://evil.com/admin/*": [
        "https://evil.com/admin/x", "https://evil.com/x/../admin/x", "https://evil.com/%61dmin/x",
        "https://evil.com/./admin/x?y", "https://evil.com:8443/admin/x", "https://evil.com/x/%2e%2e/admin/x",
        "https://evil.com/x%2f..%2f..%2fadmin/x", "https://evil.com/x/..;/admin/x",
    ],
    "https://*.bücher.com": [
        "https://a.bücher.com", "https://a.xn--bcher-kva.com", "https://a.BÜCHER.com", "https://a.bu\u0308cher.com",
        "https://a。XN--BCHER-KVA。com",
    ],
}  # fmt: skip


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        pytest.param(pattern, text, id=ascii(text))
        for pattern, texts in DISGUISES.items()
        for text in texts
    ],
)  # fmt: skip
def test_t55_no_spelling_of_a_url_avoids_a_deny(pattern: str, written: str):
    assert not admitted_by(written, denied=[{"serverUrl": pattern}])


def test_t55_a_deny_does_not_affect_similar_hosts():
    for written in ("https://evil.com.good.com", "https://notevil.com", "http://evil.com", "https://evil.co"):
        assert admitted_by(written, denied=[{"serverUrl": "https://evil.com"}]), written


LABELS = st.text("abcé。.①-", max_size=5)


@given(
    st.builds(lambda left, right: f"https://{left}example.com{right}/", LABELS, LABELS | st.text(max_size=4))
)
def test_t55_an_admitted_url_is_connected_below_the_allowed_domain(written: str):
    if admitted_by(written, allowed=[{"serverUrl": PATTERNS["B"]}]):
        host = yarl.URL(connected(written) or "").raw_host
        assert host is not None
        assert host.endswith(".example.com")


# Mutants: matchers that are known to be wrong fail with the same table.


def by_string(written: str, pattern: str) -> bool:
    return fnmatchcase(written, pattern)


def by_urllib(written: str, pattern: str) -> bool:
    try:
        host = urlsplit(written).hostname or ""
    except ValueError:
        return False
    return fnmatchcase(host, urlsplit(pattern).hostname or "")


def by_us(written: str, pattern: str) -> bool:
    if connected(written) is None:
        return False
    return matches(parse_pattern(pattern), parse_url(written), any_port=False)


def wrongly_admitted(matcher: object) -> set[str]:
    assert callable(matcher)
    return {
        written
        for written, (_, letters) in VECTORS.items()
        for key, pattern in PATTERNS.items()
        if matcher(written, pattern) and key not in letters
    }


def test_t55_a_mutant_that_compares_strings_is_detected():
    caught = wrongly_admitted(by_string)
    assert "https://evil.com#@mcp.example.com/" in caught
    assert "https://evil.com/.example.com/" in caught
    assert "https://evil.com\\@mcp.example.com/" in caught


def test_t55_a_mutant_that_uses_another_url_parser_is_detected():
    assert "https://evil.com\\@mcp.example.com/" in wrongly_admitted(by_urllib)
    assert any(not by_urllib(text, "https://evil.com") for text in DISGUISES["https://evil.com"])


def test_t55_the_url_matcher_admits_no_wrong_host():
    assert wrongly_admitted(by_us) == set()
