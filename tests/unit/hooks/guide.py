"""The events and their fields, as `docs/guides/hooks.md` describes them."""

import re
from pathlib import Path
from typing import NamedTuple

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "hooks.md"
BEGIN, END = "<!-- events -->\n", "<!-- end -->"
_FIELD = re.compile(r"^\| `([^`]+)` \| [^|]+ \| .+ \|$", re.MULTILINE)
_MATCHER = re.compile(
    r"^Runs .+\. (?:The matcher is compared with `(\w+)`|A matcher has no effect)\.$", re.MULTILINE
)


class Section(NamedTuple):
    matched: str
    """The field that the matcher is compared with; empty: none."""
    given: tuple[str, ...]
    answers: tuple[str, ...]


def sections() -> dict[str, Section]:
    """The sections by event, and "Every event"."""
    text = GUIDE.read_text().partition(BEGIN)[2].partition(END)[0]
    found = re.findall(r"### ([^\n]+)\n(.*?)(?=\n### |\Z)", text, re.DOTALL)
    return {name: _section(name, body) for name, body in found}


def _section(name: str, body: str) -> Section:
    head, _, answers = body.partition(
        "\n| answer |" if name == "Every event" else "\n| `hookSpecificOutput` |"
    )
    matcher = _MATCHER.search(head)
    assert name == "Every event" or matcher is not None, name
    return Section(
        (matcher[1] or "") if matcher is not None else "",
        tuple(_FIELD.findall(head.partition("\n| given |")[2])),
        tuple(_FIELD.findall(answers)),
    )
