"""Addresses of servers and patterns for them."""

import subprocess
import sys

import pytest
import yarl
from hypothesis import example, given
from hypothesis import strategies as st

from dragoman.errors import ConfigError
from dragoman.urls import LIMIT_CHARACTERS, ServerUrl, matches, parse_pattern, parse_url


@pytest.mark.parametrize(
    ("written", "connected"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://Example.COM:443/Path", "https://example.com/Path"),
        ("http://example.com:80/", "http://example.com/"),
        ("https://example.com:80/", "https://example.com:80/"),
        ("ws://example.com:0080", "ws://example.com/"),
        ("wss://example.com:8443?q", "wss://example.com:8443/?q"),
        ("https://example.com./", "https://example.com/"),
        ("https://localhost./", "https://localhost/"),
        ("https://my_box-1/", "https://my_box-1/"),
        # names in other scripts
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://XN--BCHER-KVA.example/", "https://xn--bcher-kva.example/"),
        ("https://straße.example/", "https://xn--strae-oqa.example/"),
        ("https://ｅｘａｍｐｌｅ。com/", "https://example.com/"),
        ("https://example.com。/", "https://example.com/"),
        # IPv4, however spelt
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://127.0.0.1./", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://0x7F.1/", "http://127.0.0.1/"),
        ("http://0177.0.0.01/", "http://127.0.0.1/"),
        ("http://①②⑦.①/", "http://127.0.0.1/"),
        ("http://1.2.0x304/", "http://1.2.3.4/"),
        ("http://0x/", "http://0.0.0.0/"),
        ("http://1.2.3.4.example/", "http://1.2.3.4.example/"),
        # IPv6
        ("http://[0:0:0:0:0:0:0:1]:8080/", "http://[::1]:8080/"),
        ("http://[2001:DB8::0:1]", "http://[2001:db8::1]/"),
        ("http://[::ffff:127.0.0.1]/", "http://127.0.0.1/"),
        ("http://[::FFFF:7f00:1]/", "http://127.0.0.1/"),
        # paths
        ("https://h/a/./b/../c", "https://h/a/c"),
        ("https://h/a/../../b", "https://h/b"),
        ("https://h/a/%2e%2E/b", "https://h/b"),
        ("https://h/a/b/..", "https://h/a/"),
        ("https://h/a/.", "https://h/a/"),
        ("https://h/..", "https://h/"),
        ("https://h//a//", "https://h//a//"),
        ("https://h/%41%7e%2d", "https://h/A~-"),
        ("https://h/a%2fb%3f%23", "https://h/a%2Fb%3F%23"),
        ("https://h/%252e%252e/", "https://h/%252e%252e/"),
        ("https://h/é|{x}", "https://h/%C3%A9%7C%7Bx%7D"),
        ("https://h/a%21b%2Bc+d", "https://h/a!b%2Bc+d"),
        ("https://h/https://other.example/", "https://h/https://other.example/"),
        # queries and fragments
        ("https://h?", "https://h/"),
        ("https://h/?a=%7e%20&b=%26é", "https://h/?a=~%20&b=%26%C3%A9"),
        ("https://h/?a=../x", "https://h/?a=../x"),
        ("https://h/#@other.example/", "https://h/"),
        ("https://h#%zz", "https://h/"),
    ],
)
def test_written_urls_and_their_canonical_form(written: str, connected: str):
    assert str(parse_url(written)) == connected


REFUSED = {
    "scheme": ["ftp://h/", "file://h/etc/passwd", "javascript://h/", "*://h/", "://h/", "h2://h"],
    "://": ["", "h", "//h/", "https:h", "https:/h", "https", "/x", "h/https://x", "?://h"],
    "no host": ["https://", "https:///h", "https://:80/", "https://?q", "https://#x", "http://::1/", "http://::1]/",
                "file:///etc/passwd"],
    "user name": ["https://a@h/", "https://a:b@h/", "https://@h/", "https://h@", "https://a%40b@h"],
    "backslash": ["https://h\\@x/", "https://h/a\\b", "https:\\\\h\\", "https://h/#\\"],
    "whitespace": [
        " https://h", "https://h ", "https://h\t/", "https://h/\n", "\thttps://h", "https://h\r\n/", "https://h/\x00",
        "https://h/\x7f", "https://h\u00a0/", "https://h/\u200b", "https://h\u00ad/", "https://h/\u2028",
        "https://h/\u202e", "https://h\ufeff/", "https://h/\ud800", "https://h/#\x1b",
    ],
    "port": ["https://h:/", "https://h:0/", "https://h:65536/", "https://h:-1/", "https://h:４４３/", "https://h:1:2/",
             "https://h:+1", "https://h:*/", "https://h:443.evil.com/", "https://h:1_0/", "https://[::1]:x"],
    "%": ["https://h%2eevil.com/", "https://%68/", "https://h/%", "https://h/%4", "https://h/%zz", "https://h/?%u0041",
          "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/"],
    "international": ["https://é*/", "https://xn--a.example/", "https://xn--example-.com/", "https://☃.net/",
                      "https://a／b/", "https://h％2eevil.com/", "https://xn--é/", "https://-é/", "https://h＊/"],
    "name of letters": ["https://a..b/", "https://./", "https://h../", "https://.h/", "https://a!b/", "https://a,b/",
                        f"https://{'a' * 64}/", "https://a|b/", "https://<h>/", "https://h'/"],
    "longer than 253": ["https://" + "a." * 127 + "b/"],
    "star": ["https://*/", "https://*.example.com/", "http://[*]/"],
    "IPv4": ["http://1.2.3.4.5/", "http://a.1/", "http://256.0.0.1/", "http://4294967296/", "http://1.2.3.256/",
             "http://08/", "http://1.2.65536/", "http://a.0x1", "http://1.x.3.4", "http://1.2.3.4.0x"],
    "IPv6": ["http://[]/", "http://[::1/", "http://[1.2.3.4]/", "http://[::1]x/", "http://[::g]/",
             "http://x[::1]/", "http://[[::1]]/", "http://[v1.x]/", "http://[::１]/"],
    "dot segments": ["https://h/..%2fx", "https://h/a/.%2F", "https://h/%2e%2e%5cx", "https://h/a/..;/b",
                     "https://h/a%2f..", "https://h/.;x=1/b"],
    "longer than 8192": ["https://h/" + "a" * LIMIT_CHARACTERS, "https://h/" + "é" * 2000],
}  # fmt: skip


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("written", "word"),
    [pytest.param(text, word, id=ascii(text)[:40]) for word, texts in REFUSED.items() for text in texts],
)
def test_an_ambiguous_url_is_refused_with_the_reason(written: str, word: str):
    with pytest.raises(ConfigError, match=word.replace("*", r"\*")) as caught:
        parse_url(written)
    assert caught.value.hint


@pytest.mark.parametrize(
    "written",
    [
        "https://s3cret:s3cret@h/",
        "https://h:s3cret/",
        "ftp://s3cret",
        "https://h/s3cret%",
        "s3cret",
        "https://s3cret..x",
    ],
)
def test_an_error_never_contains_the_url(written: str):
    with pytest.raises(ConfigError) as caught:
        parse_url(written)
    assert "s3cret" not in f"{caught.value} {caught.value.hint} {caught.value!r}"


def test_a_repr_contains_the_origin_and_no_secrets():
    url = parse_url("https://h:8443/s3cret?key=s3cret")
    assert repr(url) == "<ServerUrl https://h:8443>"
    assert url.origin == "https://h:8443"
    assert str(url) == "https://h:8443/s3cret?key=s3cret"


LABELS = st.one_of(
    st.text("abcXYZ019_-", min_size=1, max_size=8),
    st.text("aéßσı①．。ｅ漢אK-1", min_size=1, max_size=6),
    st.sampled_from(["xn--bcher-kva", "xn--a", "0x7f", "127", "0", "255", "00"]),
)
HOSTS = st.one_of(
    st.lists(LABELS, min_size=1, max_size=4).map(".".join),
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda address: f"[{address}]"),
)
SEGMENTS = st.one_of(
    st.sampled_from([".", "..", "%2e", "%2E.", "", "*", "%2A", "%2f", "%5C", "%25", "..;", "a%zz"]),
    st.text(max_size=6),
    st.binary(max_size=3).map(lambda raw: "".join(f"%{byte:02x}" for byte in raw)),
    st.text("!$&'()*+,;=:@-._~[]{}|^`\"<>/", max_size=6),
)
URLS = st.builds(
    lambda scheme, host, dot, port, path, query: (
        f"{scheme}://{host}{dot}{port}" + "".join(f"/{part}" for part in path) + query
    ),
    st.sampled_from(["http", "https", "ws", "wss", "HTTPS"]),
    HOSTS,
    st.sampled_from(["", "", "", ".", "。"]),
    st.one_of(st.just(""), st.integers(0, 70000).map(lambda port: f":{port}")),
    st.lists(SEGMENTS, max_size=5),
    st.one_of(st.just(""), SEGMENTS.map(lambda text: f"?{text}"), SEGMENTS.map(lambda text: f"#{text}")),
)


def parsed(text: str) -> ServerUrl | None:
    try:
        return parse_url(text)
    except ConfigError:
        return None


@pytest.mark.requirement("CFG-7")
@given(URLS)
@example("https://h/a%2Bb+c?d%2Be+f;g%3B=%3D")
@example("http://[::ffff:1.2.3.4]:8080//x/")
@example("https://h/a;b=c,d:@e")
def test_the_http_library_parses_the_canonical_form_equally(text: str):
    url = parsed(text)
    if url is None:
        return
    theirs = yarl.URL(str(url))
    assert theirs.scheme == url.scheme
    assert theirs.raw_host == url.host.strip("[]")
    assert theirs.port == url.port
    assert theirs.raw_path == url.path
    assert theirs.raw_query_string == url.query
    assert (theirs.user, theirs.password, theirs.fragment) == (None, None, "")
    assert str(theirs) == str(url)


@given(URLS)
def test_the_canonical_form_parses_to_itself_and_is_plain_ascii(text: str):
    url = parsed(text)
    if url is not None:
        assert parse_url(str(url)) == url
        assert str(url).isascii()
        assert str(url).isprintable()


@given(st.one_of(st.text(), URLS), st.one_of(st.text(), URLS), st.booleans())
def test_any_text_is_parsed_or_refused_and_matching_never_raises(pattern: str, text: str, any_port: bool):
    url = parsed(text) or parse_url("https://h/")
    try:
        understood = parse_pattern(pattern)
    except ConfigError:
        return
    assert matches(understood, url, any_port=any_port) in (True, False)


@given(URLS)
def test_a_url_used_as_a_pattern_matches_itself(text: str):
    url = parsed(text)
    if url is not None:
        for any_port in (True, False):
            assert matches(parse_pattern(str(url)), url, any_port=any_port)
            assert matches(parse_pattern(text), url, any_port=any_port)
            assert matches(parse_pattern("*"), url, any_port=any_port)


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        (
            "https://a.example",
            "https://a.example https://a.example/x https://A.example.:443/?q",
            "http://a.example https://a.example:8443 https://b.a.example wss://a.example",
        ),
        ("https://a.example/", "https://a.example https://a.example/x/y", "https://a.example:8443/"),
        ("https://A.Example.:443/*", "https://a.example/ https://a.example/x", "https://a.example:444/"),
        (
            "*://a.example",
            "http://a.example https://a.example wss://a.example ws://a.example",
            "http://a.example:443 https://a.example:80",
        ),
        ("http*://a.example", "http://a.example https://a.example", "ws://a.example"),
        (
            "https://*.example.com",
            "https://a.example.com https://a.b.example.com",
            "https://example.com https://evilexample.com https://a.example.com.evil.org",
        ),
        ("https://*", "https://a https://a.b https://1.2.3.4 https://[::1]/x", "http://a https://a:8443"),
        ("*", "http://a https://a:8443/x ws://[::1]:9", ""),
        ("*://*:*", "http://a https://a:8443/x ws://[::1]:9", ""),
        (
            "https://a-*.example.com",
            "https://a-1.example.com https://a-.example.com",
            "https://a.example.com https://b-1.example.com",
        ),
        (
            "http://10.*",
            "http://10.0.0.1 http://10.1 http://167772161",
            "http://10.evil.com http://110.0.0.1 http://10.a",
        ),
        ("http://*.1", "http://10.0.0.1", "http://10.0.0.2"),
        ("http://127.1", "http://127.0.0.1 http://2130706433", "http://127.1.example"),
        ("http://[::1]", "http://[0:0::1]/", "http://[::2]/ http://localhost"),
        ("http://[::ffff:127.0.0.1]", "http://127.0.0.1", "http://[::1]"),
        ("http://[*]", "http://[::1] http://[2001:db8::1]", "http://127.0.0.1 http://a"),
        (
            "https://*.bücher.example",
            "https://a.xn--bcher-kva.example https://a.BÜCHER。example",
            "https://a.bucher.example",
        ),
        ("https://xn--*.com", "https://é.com", "https://e.com"),
        ("https://a:8443", "https://a:8443/x", "https://a https://a:844 https://a:18443"),
        ("https://a:*", "https://a:8443 https://a", "http://a"),
        ("https://a:80*", "https://a:80 https://a:8080", "https://a"),
        (
            "https://a/x",
            "https://a/x https://a/x?q https://a/%78 https://a/y/../x",
            "https://a/X https://a/x/ https://a/x/y https://a/",
        ),
        (
            "https://a/x/*",
            "https://a/x/ https://a/x/y/z",
            "https://a/x https://a/x/../y https://a/x/%2e%2e/y https://a/X/y",
        ),
        ("https://a/*/admin", "https://a/x/admin https://a/x/y/admin", "https://a/admin https://a/x/admin/"),
        ("https://a/é*", "https://a/%c3%a9 https://a/éx", "https://a/e"),
        ("https://a/%2A", "https://a/* https://a/%2a", "https://a/x"),
        ("https://a/x%2fy", "https://a/x%2Fy", "https://a/x/y"),
        ("https://a/b/../c", "https://a/c", "https://a/b/c"),
        ("https://a/x?k=1", "https://a/x?k=1 https://a/x?%6b=1", "https://a/x https://a/x?k=12"),
        ("https://a/x?k=*", "https://a/x?k=12 https://a/x?k=", "https://a/x?j=1"),
        ("https://a?", "https://a/x?k=1", ""),
        ("https://a?b", "https://a/?b https://a/x?b", "https://axb https://a"),
        ("https://a/[bc]", "https://a/%5Bbc%5D", "https://a/b"),
        ("https://a/#frag", "https://a/x", ""),
    ],
)
def test_which_urls_a_pattern_matches(pattern: str, yes: str, no: str):
    understood = parse_pattern(pattern)
    for text in yes.split():
        assert matches(understood, parse_url(text), any_port=False), text
    for text in no.split():
        assert not matches(understood, parse_url(text), any_port=False), text


@pytest.mark.parametrize(
    ("pattern", "url", "any_port", "expected"),
    [
        ("https://a", "https://a:8443", True, True),
        ("https://a", "https://a:8443", False, False),
        ("https://a", "https://a", False, True),
        ("*://a", "http://a:443", False, False),
        ("*://a", "http://a:443", True, True),
        ("https://a:443", "https://a:8443", True, False),
        ("https://a:443", "https://a", True, True),
    ],
)
def test_a_pattern_without_a_port_means_the_default_one_or_all_if_it_denies(
    pattern: str, url: str, any_port: bool, expected: bool
):
    assert matches(parse_pattern(pattern), parse_url(url), any_port=any_port) is expected


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "a.example",
        "a.example/*",
        "ftp://a",
        "x*://a",
        "https://",
        "https://u@a",
        "https://*@a",
        "https://a b",
        "https://a\\b",
        "https://a:x",
        "https://a:",
        "https://a:0",
        "https://b*é.com",
        "https://a..b",
        "https://[fe80:*]",
        "https://a/%",
        "https://a/%*",
        "https://%61",
        "https://1.2.3.4.5",
        "https://[1?]",
        "/x",
        "**",
        "https://a/..%2F*",
        "https://" + "*" * 8200,
    ],
)
def test_an_invalid_pattern_is_refused(pattern: str):
    with pytest.raises(ConfigError):
        parse_pattern(pattern)


def test_importing_urls_and_policy_loads_no_large_modules():
    code = (
        "import sys, dragoman.config.policy\n"
        "print([name for name in ('idna', 'yarl', 'aiohttp', 'asyncio') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout.strip() == "[]"
