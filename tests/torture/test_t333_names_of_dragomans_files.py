"""T333: the names of Dragoman's own files (tokens, conversations) are not listed without a rule."""

from pathlib import Path

import pytest

from tests.torture.test_t273_dragomans_own_files import files, told

__all__ = ["files"]
pytestmark = pytest.mark.requirement("AGT-2")


@pytest.mark.parametrize("pattern", [".dragoman/**", "**/*", "*.json"])
def test_t333_a_search_from_a_parent_folder_leaves_them_out(home: Path, pattern: str):
    (result,) = told(home, [("Glob", {"pattern": pattern})])
    assert "one.json" not in result
    assert ("notes.json" in result) == (pattern != ".dragoman/**")


def test_t333_a_rule_allows_listing_them(home: Path):
    (result,) = told(
        home, [("Glob", {"pattern": "tokens/*.json", "path": ".dragoman/state"})], "--allowed-tools", "Glob"
    )
    assert result == str(home.resolve() / ".dragoman/state/tokens/one.json")
