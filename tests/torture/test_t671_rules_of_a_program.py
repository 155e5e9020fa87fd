"""T671: the rules of a program are lists of strings. A single string is an error, and not one rule for each
letter."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import ConfigError, Host

CASES: list[tuple[str, Any]] = [
    ("deny", "mcp__box"),
    ("ask", "mcp__box"),
    ("allow", "mcp__box"),
    ("deny", [["mcp__box"]]),
    ("deny", [None]),
    ("deny", None),
    ("deny", {"mcp__box": True}),
]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("kind", "listed"), CASES, ids=str)
def test_t671_rules_that_are_not_a_list_of_strings_are_an_error(home: Path, kind: str, listed: Any):
    with pytest.raises(ConfigError) as caught:
        Host({}, rules={kind: listed})
    assert str(caught.value).splitlines()[0] == f"rules: '{kind}' must be a list of strings"
