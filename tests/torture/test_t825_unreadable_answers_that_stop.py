"""T825: the answer of a hook has `"continue": false`, and cannot be parsed in full, or has it in another
position. It refuses the call nevertheless."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from tests.servers import stdio_server
from tests.torture.projects import user

pytestmark = pytest.mark.requirement("PRM-5")

END = '{"continue": false, "stopReason": "no"}'
DAMAGED = {
    "a line before it": f"checking\n{END}",
    "a trailing comma": END.replace('"no"', '"no",'),
    "cut off": END[:-1],
    "as Python writes it": "{'continue': False}",
    "a byte that is not UTF-8": END.replace("no", "no\udcff"),
    "a number with very many digits": END.replace('"no"', "9" * 5000),
    "in a list": f"[{END}]",
}
ELSEWHERE: dict[str, dict[str, Any]] = {
    "another letter case": {"Continue": False},
    "in the event's own fields": {"hookSpecificOutput": {"continue": False}},
}
ALL = {**DAMAGED, **{how: json.dumps(answer) for how, answer in ELSEWHERE.items()}}


@pytest.mark.parametrize("how", ALL)
async def test_t825_a_hook_answer_with_continue_false_refuses_the_call(home: Path, how: str):
    (home / "answer").write_text(ALL[how], "utf-8", "surrogateescape")
    hook = {"type": "command", "command": f"cat {home / 'answer'}"}
    user(
        home,
        {
            "mcpServers": {"box": stdio_server("well_behaved.py")},
            "permissions": {"allow": ["mcp__box"]},
            "hooks": {"PreToolUse": [{"hooks": [hook]}]},
        },
    )
    async with Host.configured() as host:
        await host.ready(timeout=30)
        outcome = await host.call("mcp__box__echo", {})
    assert isinstance(outcome.error, PermissionRefused)
