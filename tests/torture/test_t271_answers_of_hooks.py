"""T271: the `ask` decision of a hook applies, also if its answer is otherwise damaged."""

import json
import sys
from pathlib import Path

import pytest

from tests.e2e import forked
from tests.servers import SERVER_PROGRAMS
from tests.torture.projects import user

pytestmark = pytest.mark.requirement("PRM-5")

ASK = '{"hookSpecificOutput": {"permissionDecision": "ask"}}'
DAMAGED = {
    "a line before it": f"checking\n{ASK}",
    "a trailing comma": ASK.replace('"ask"', '"ask",'),
    "cut off": ASK[:-2],
    "single quotes": ASK.replace('"', "'"),
    "another letter case": ASK.replace("ask", "Ask"),
    "in a list": f"[{ASK}]",
    "an older field": '{"decision": "ask"}',
    "a byte that is not UTF-8": f'{ASK[:-1]}, "reason": "\udcff"}}',
    "a NUL before it": f"\0{ASK}",
    "an allow besides": f'{ASK[:-1]}, "permissionDecision": "allow"}}',
}


@pytest.mark.parametrize("how", DAMAGED)
def test_t271_an_ask_decision_overrides_an_allow_rule(home: Path, how: str):
    (home / "answer").write_text(DAMAGED[how], "utf-8", "surrogateescape")
    hook = {"type": "command", "command": f"cat {home}/answer"}
    user(
        home,
        {
            "mcpServers": {
                "calm": {"command": sys.executable, "args": [str(SERVER_PROGRAMS / "well_behaved.py")]}
            },
            "permissions": {"allow": ["mcp__calm__*"]},
            "hooks": {"PreToolUse": [{"matcher": "mcp__calm__*", "hooks": [hook]}]},
        },
    )
    ended = forked.run("call", "mcp__calm__echo", "--json")
    assert (ended.returncode, json.loads(ended.stdout)["error"]["code"]) == (6, "refused")
