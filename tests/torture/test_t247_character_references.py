"""T247: a character reference in Markdown adds no control or hidden character to the screen."""

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
def test_t247_a_referenced_control_character_is_shown_as_visible_text(place: str, reference: str):
    shown = markdown_text(place.format(reference)).plain
    assert all(map(is_safe, shown.split("\n")))


def test_t247_other_references_are_decoded_as_usual():
    assert markdown_text("&lt;b&gt; &amp; &eacute;").plain == "<b> & é"
