"""T686: a refusal that a function returns as a hook applies, whatever Python types its answer contains."""

import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Host, hook
from dragoman.errors import PermissionRefused
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-1")


class Verdict(enum.Enum):
    DENY = "deny"
    ASK = "ask"
    BLOCK = "block"


class Key(enum.Enum):
    DECISION = "decision"


@dataclass
class Specific:
    permissionDecision: str = "deny"


@dataclass
class Answer:
    decision: str = "block"


ANSWERS: dict[str, Any] = {
    "enum at the top": {"decision": Verdict.BLOCK},
    "enum inside": {"hookSpecificOutput": {"permissionDecision": Verdict.DENY}},
    "enum that asks": {"hookSpecificOutput": {"permissionDecision": Verdict.ASK}},
    "enum as a name": {Key.DECISION: "block"},
    "dataclass inside": {"hookSpecificOutput": Specific()},
    "tuple inside": {"hookSpecificOutput": (Specific(),)},
    "encoded inside": {"hookSpecificOutput": msgspec.Raw(b'{"permissionDecision": "deny"}')},
    "dataclass": Answer(),
    "list": [{"decision": "block"}],
    "text": json.dumps({"decision": "block"}),
    "bytes": json.dumps({"decision": "block"}).encode(),
}


def box() -> InMemoryServer:
    server = InMemoryServer("box")
    server.add_tool("delete", lambda arguments, _: "deleted")
    return server


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("is_awaited", [False, True], ids=["function", "coroutine"])
async def test_t686_a_refusal_with_python_types_applies(home: Path, answer: Any, is_awaited: bool):
    def now(given: dict[str, Any]) -> Any:
        return answer

    async def later(given: dict[str, Any]) -> Any:
        return answer

    function: Any = later if is_awaited else now
    async with Host(
        {"box": box()}, hooks=[hook(function, "PreToolUse")], permission_mode="bypassPermissions"
    ) as host:
        await host.ready()
        outcome = await host.call("mcp__box__delete")
    assert isinstance(outcome.error, PermissionRefused)


async def test_t686_invalid_encoded_json_is_a_failure(home: Path):
    answer: Any = {"hookSpecificOutput": msgspec.Raw(b"{"), "decision": "block"}
    refusing = hook(lambda given: answer, "PreToolUse", blocks_on_error=True)
    async with Host({"box": box()}, hooks=[refusing], permission_mode="bypassPermissions") as host:
        await host.ready()
        outcome = await host.call("mcp__box__delete")
    assert isinstance(outcome.error, PermissionRefused)
