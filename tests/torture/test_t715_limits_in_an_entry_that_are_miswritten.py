"""T715: an entry whose `roots`, `oauth`, `oauth.issuer` or `oauth.scopes` is misspelled in case, blanks or
punctuation is refused: its server would get folders, or tokens of any issuer or with more scopes."""

from typing import Any

import pytest

from dragoman import ConfigError
from dragoman.config.model import parse_entry

pytestmark = pytest.mark.requirement("PRM-1")
ISSUER = "https://login.example.com"


@pytest.mark.parametrize(
    ("fields", "written", "wanted"),
    [
        ({"Roots": False}, "Roots", "roots"),
        ({"OAuth": {"issuer": ISSUER}}, "OAuth", "oauth"),
        ({"o_auth": {"issuer": ISSUER}}, "o_auth", "oauth"),
        ({"oauth": {"Issuer": ISSUER}}, "Issuer", "issuer"),
        ({"oauth": {"issuer ": ISSUER}}, "issuer ", "issuer"),
        ({"oauth": {"Scopes": "read"}}, "Scopes", "scopes"),
        ({"oauth": {"issuer": ISSUER, "scopes": "read", "scope": "write"}}, "scope", "scopes"),
    ],
    ids=str,
)
def test_t715_the_entry_is_refused_with_the_name_of_the_field(
    fields: dict[str, Any], written: str, wanted: str
):
    with pytest.raises(ConfigError) as caught:
        parse_entry("box", {"url": "https://box.example.com/mcp", **fields})
    text = str(caught.value).splitlines()[0]
    assert text == f"server 'box': the field {written!r} must be written {wanted!r}"


def test_t715_other_fields_inside_are_kept_as_before():
    oauth = {"issuer": ISSUER, "scopes": "read", "clientid": "x", "audience": "read"}
    config = parse_entry("box", {"url": "https://box.example.com/mcp", "roots": False, "oauth": oauth})
    assert config.roots is False
    assert config.oauth is not None
    assert (config.oauth.issuer, config.oauth.scopes) == (ISSUER, "read")
    assert config.oauth.unknown == {"clientid": "x", "audience": "read"}
