"""T247: a character reference in Markdown brings no character to the screen that steers or hides text."""

import pytest

from dragoman.cleaning import is_safe
from dragoman.tui.markdown_text import markdown_text

pytestmark = pytest.mark.requirement("CAT-2")
REFERENCES = ["&#x202e;", "&#8238;", "&rlm;", "&ZeroWidthSpace;", "&#xE0041;", "&shy;", "&#13;", "&#x2028;"]
PLACES = [
    "a {} b",
    "# {} b",
    "- *{}*",
    "> **{}**",
    "| a |\n|-|\n| {} |",
    "[a {}](https://example.com)",
    "![{}](x)",
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("reference", REFERENCES)
def test_t247_what_a_reference_becomes_is_visible(place: str, reference: str):
    shown = markdown_text(place.format(reference)).plain
    assert all(map(is_safe, shown.split("\n")))


def test_t247_others_are_read_as_usual():
    assert markdown_text("&lt;b&gt; &amp; &eacute;").plain == "<b> & é"
