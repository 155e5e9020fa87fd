"""T711: a deny rule about an argument also applies to a URL in the delimiters that Python's `urllib`
removes, and to a `file:` URL without a slash, which Node reads as an absolute path."""

import pytest

from tests.torture.test_t137_spellings_of_arguments import decided

pytestmark = pytest.mark.requirement("PRM-1")
METADATA, KEYS = "url=http://169.254.169.254/*", "url=file:///srv/keys/*"


@pytest.mark.parametrize(
    "url",
    [
        "<http://169.254.169.254/latest>",
        " < http://169.254.169.254/latest > ",
        "URL:http://169.254.169.254/latest",
        "url: http://169.254.169.254/latest",
        "<URL:http://169.254.169.254/latest>",
        "<URL:http://user@169.254.169.254:80/a/../latest>",
        "%3Chttp://169.254.169.254/latest%3E",
    ],
)
def test_t711_delimiters_are_not_part_of_a_url(url: str):
    assert decided("deny", METADATA, url=url) == "deny"
    assert decided("deny", METADATA, url=["https://example.com/", url]) == "deny"


@pytest.mark.parametrize(
    "url", ["file:srv/keys/a", "file:./srv/keys/a", "FILE:x/../srv//keys/a", "<URL:file:srv/keys/a>"]
)
def test_t711_a_file_url_without_a_slash_is_an_absolute_path(url: str):
    assert decided("deny", KEYS, url=url) == "deny"
    assert decided("deny", "url=/srv/keys/*", url=url) == "deny"


def test_t711_other_urls_are_not_matched():
    for url in ("<http://169.254.169.25/>", "URL:http://other/", "<>", "url:", "<http://169.254.169.254/"):
        assert decided("deny", METADATA, url=url) == "ask"
    for url in ("file:srv/key", "file:a/srv/keys/a", "url:" * 200_000 + "file:srv/keys/a"):
        assert decided("deny", KEYS, url=url) == "ask"


def test_t711_an_allow_rule_matches_the_url_as_written():
    for url in ("<http://169.254.169.254/x>", "URL:http://169.254.169.254/x"):
        assert decided("allow", METADATA, url=url) == "ask"
    assert decided("allow", KEYS, url="file:srv/keys/a") == "ask"
