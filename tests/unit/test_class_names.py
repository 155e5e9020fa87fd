"""One word, one meaning: no two classes have the same name."""

import re
from collections import Counter
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src" / "dragoman"
SHARED = {"Prompt"}
"""A prompt of a server, and the line in which a person writes."""


def test_no_two_public_classes_have_the_same_name():
    found = Counter(
        name
        for path in SOURCES.rglob("*.py")
        for name in re.findall(r"^class ([A-Z]\w*)", path.read_text(), re.MULTILINE)
    )
    assert {name for name, count in found.items() if count > 1} == SHARED
