"""The guide's tables are the contract. `python tests/unit/hooks/test_events.py` writes them again."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dragoman.hooks.events import ANSWERS, COMMON, EVENTS, EventSpec, Field

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "hooks.md"
BEGIN, END = "<!-- events: made from hooks/events.py -->\n", "<!-- end -->"


def table(heading: str, fields: Sequence[Field]) -> Iterator[str]:
    yield f"| {heading} | | |"
    yield "|---|---|---|"
    for field in fields:
        yield f"| `{field.name}` | {field.kind} | {field.meaning} |"
    yield ""


def section(spec: EventSpec) -> Iterator[str]:
    yield f"### {spec.name}\n"
    matcher = f"The matcher looks at `{spec.matched}`." if spec.matched else "A matcher has no effect."
    yield f"Runs {spec.when}. {matcher}\n"
    yield from table("given", spec.given)
    if spec.answers:
        yield from table("`hookSpecificOutput`", spec.answers)
    if spec.blocking:
        yield f"A refusal: {spec.blocking}. A failure of a hook that blocks on errors: {spec.failing}.\n"
    else:
        yield "The hook is only notified; a refusal has no effect.\n"


def sections() -> str:
    lines = ["### Every event\n", *table("given", COMMON), *table("answer", ANSWERS)]
    for spec in EVENTS.values():
        lines += section(spec)
    return "\n".join(lines)


def test_the_guide_has_the_tables_of_the_contract():
    written = GUIDE.read_text().partition(BEGIN)[2].partition(END)[0]
    assert written == sections()


@pytest.mark.requirement("PRM-5")
def test_every_event_that_is_asked_for_is_there():
    assert set(EVENTS) == {
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "Elicitation",
        "ElicitationResult",
        "SessionStart",
        "SessionEnd",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "Notification",
        "ServerConnected",
        "ServerFailed",
        "NeedsAuth",
        "ToolsChanged",
    }


def test_a_matcher_looks_at_a_field_that_is_given():
    for spec in EVENTS.values():
        assert spec.matched in {"", *(field.name for field in spec.given)}


if __name__ == "__main__":
    head, _, rest = GUIDE.read_text().partition(BEGIN)
    GUIDE.write_text(f"{head}{BEGIN}{sections()}{END}{rest.partition(END)[2]}")
