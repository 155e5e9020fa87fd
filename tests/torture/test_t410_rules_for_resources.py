"""T410: the approval question of a server lists the allow rules by which a model would read its
resources."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.cli.approval_questions import warnings_about_rules
from tests.torture import projects

pytestmark = pytest.mark.requirement("CFG-8")
LISTED_RULES = "these allow rules let a model read its resources without a question: "
RULES_OF_THE_SERVER = (
    "read_mcp_resource(server=docs)",
    "read_mcp_resource(server=do*, uri=note://*)",
    "read_mcp_*",
)
OTHERS = ("read_mcp_resource(server=other)", "read_mcp_resource(server!=docs)", "Read", "get_mcp_prompt")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ((*RULES_OF_THE_SERVER, *OTHERS), [LISTED_RULES + ", ".join(RULES_OF_THE_SERVER)]),
        (("read_mcp_resource",), [LISTED_RULES + "read_mcp_resource"]),
        (OTHERS, []),
    ],
)
def test_t410_allow_rules_that_would_apply_are_listed(home: Path, rules: Sequence[str], told: list[str]):
    projects.user(home, {"permissions": {"allow": list(rules)}})
    assert list(warnings_about_rules(projects.seen(home), "docs")) == told
