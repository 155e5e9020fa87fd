"""T145: a prohibition applies although it is written, answered or saved in an unusual form."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.bystander_host import until

DENY = {"permissions": {"deny": ["mcp__box__echo"]}}
BYPASS = {"permission_mode": "bypassPermissions"}


def hooked(entry: object, matcher: object = "*", event: str = "PreToolUse") -> dict[str, Any]:
    return {"hooks": {event: [{"matcher": matcher, "hooks": [entry]}]}}


REFUSES = {"type": "command", "command": "exit 2"}
MISSING = {"type": "command", "command": "/no/such/program"}
MISWRITTEN: list[tuple[str, dict[str, Any]]] = [
    ("user", {"permissions": {"deny\u200b": ["mcp__box"]}}),
    ("user", {"permissions": {"\uff44\uff45\uff4e\uff59": ["mcp__box"]}}),
    ("user", {"denied_mcp_servers": [{"serverName": "box"}]}),
    ("user", {"denied-mcp-servers": [{"serverName": "box"}]}),
    ("user", hooked(REFUSES, event="PreToolUse\u200b")),
    ("user", hooked(REFUSES, event="pre_tool_use")),
    ("user", hooked({**MISSING, "onerror": "block"})),
    ("user", hooked({**MISSING, "on_error": "block"})),
    ("user", hooked({"type": "command", "Command": "exit 2"})),
    ("managed", {"permissions": {"disableBypasspermissionsMode": "disable"}}),
    ("managed", {"permissions": {"disableBypassPermissionsMode ": "disable"}}),
    ("managed", {"allowed_mcp_servers": []}),
]


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(("place", "said"), MISWRITTEN, ids=str)
def test_t145_a_misspelled_prohibiting_key_refuses_every_server(home: Path, place: str, said: dict[str, Any]):
    file = (projects.managed if place == "managed" else projects.user)(home, said)
    seen = projects.seen(given={"box": {"command": "/bin/echo"}})
    assert seen.servers["box"].eligibility == "refused"
    assert str(file) in (seen.servers["box"].reason or "")
    assert "must be written" in (seen.servers["box"].reason or "")


async def text_of_the_call(**options: Any) -> str:
    async with Host.configured(servers={"box": stdio_server("well_behaved.py")}, **BYPASS, **options) as host:
        await host.ready(timeout=30)
        return (await host.call("mcp__box__echo", {"message": "through"})).text


REFUSING_ANSWERS: list[object] = [
    {"decision": "BLOCK"},
    {"Decision": "block"},
    {"continue": "false"},
    {"continue": 0},
    {"hookSpecificOutput": {"permissionDecision": "block"}},
    {"hookSpecificOutput": {"permissionDecision": "Deny"}},
    {"hookSpecificOutput": [{"permissionDecision": "deny"}]},
    {"hookSpecificOutput": {"decision": {"behavior": "deny"}}},
    "{'decision': 'block'}",
    "the answer: {'permissionDecision': 'deny'}",
]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("answer", REFUSING_ANSWERS, ids=str)
async def test_t145_a_refusal_counts_in_every_form(home: Path, answer: object):
    printed = answer if isinstance(answer, str) else json.dumps(answer)
    projects.user(home, hooked({"type": "command", "command": f"echo {shlex.quote(printed)}"}))
    assert (await text_of_the_call()).startswith("mcp__box__echo was not allowed: refused by the hook")


PASSING_ANSWERS: list[dict[str, Any]] = [
    {"hookSpecificOutput": {"updatedInput": {"message": "through", "decision": "deny"}}},
    {"systemMessage": "decision: deny", "reason": "block"},
    {"continue": True},
]


@pytest.mark.parametrize("answer", PASSING_ANSWERS, ids=str)
async def test_t145_a_hook_answer_that_only_passes_text_on_is_not_a_refusal(
    home: Path, answer: dict[str, Any]
):
    command = f"echo {shlex.quote(json.dumps(answer))}"
    projects.user(home, hooked({"type": "command", "command": command}))
    assert await text_of_the_call() == "through"


REFUSING = {
    "a matcher with blanks": hooked(REFUSES, "mcp__other | mcp__box__echo"),
    "a type in capitals": hooked({**REFUSES, "type": "Command"}),
}


@pytest.mark.parametrize("settings", REFUSING.values(), ids=list(REFUSING))
async def test_t145_a_refusal_by_a_hook_is_respected(home: Path, settings: dict[str, Any]):
    projects.user(home, settings)
    assert (await text_of_the_call()).startswith("mcp__box__echo was not allowed: refused by the hook")


def keep_the_time(path: Path) -> None:
    """Replaces the text by one of the same length and keeps the modification time."""
    before = path.stat()
    path.write_text(json.dumps(DENY).ljust(before.st_size))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[bool, Callable[[Path], object]]] = {
    "servers given in code": (True, lambda path: path.write_text(json.dumps(DENY))),
    "another text of the same time and length": (False, keep_the_time),
}


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("strict", "change"), CHANGES.values(), ids=list(CHANGES))
async def test_t145_a_watching_host_applies_a_new_deny_rule(home: Path, strict: bool, change: Any):
    file = projects.user(home, {"permissions": {"allow": ["mcp__other__tool", "mcp__other__another_tool"]}})
    async with Host.configured(
        servers={"box": stdio_server("well_behaved.py")}, strict=strict, watch=True, **BYPASS
    ) as host:
        await host.ready(timeout=30)
        assert (await host.call("mcp__box__echo", {"message": "x"})).text == "x"
        change(file)
        await until(
            lambda: ("mcp__box__echo",) in [part.rules.deny for part in host.configuration.permissions]
        )
        assert (await host.call("mcp__box__echo", {"message": "x"})).is_error
