"""T121: matchers of hooks and deny rules match names that begin and end with blanks, written with those
blanks."""

import pytest

from dragoman.hooks.matchers import parse
from dragoman.permissions.subjects import Subject, all_names

pytestmark = pytest.mark.requirement("PRM-5")


@pytest.mark.parametrize("blank", [" ", "  ", "\u00a0"], ids=ascii)
@pytest.mark.parametrize(("server", "tool"), [("s", "{0}drop it{0}"), ("{0}my server{0}", "drop")])
def test_t121_names_with_leading_and_trailing_blanks_are_matched(server: str, tool: str, blank: str):
    server, tool = server.format(blank), tool.format(blank)
    names = all_names("mcp__x__y_01234567", server, tool)
    for text in (f"mcp__{server}__{tool}", f"mcp__{server}", f"mcp__{server.strip()}__{tool.strip()}"):
        assert parse(text).may_mean(names), text
        assert Subject.of(text).may_mean("mcp__x__y_01234567", server, tool), text
