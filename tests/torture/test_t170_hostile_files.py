"""T170: small files that consist of problems are read in linear time, and few of the problems are
reported."""

import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.model import PROBLEM_LIMIT
from dragoman.hooks import configured
from tests.case_selection import some
from tests.cpu_time import shortest
from tests.torture.projects import seen

pytestmark = pytest.mark.requirement("CFG-10")

FEW, MANY = 500, 4_000
GROWTH = 24.0
"""Eight times as many may take this many times as long; in proportion it is 8, pair by pair 64."""

PLACES = {
    "project": "work/.mcp.json",
    "local": "work/.dragoman/settings.local.json",
    "user": ".dragoman/settings.json",
    "managed": "managed/managed-mcp.json",
}

FILES: dict[str, Callable[[int], Any]] = {
    "unknown keys": lambda count: {f"key{number}": 0 for number in range(count)},
    "unknown keys that look like known ones": lambda count: {
        f"mcpServer{number}": 0 for number in range(count)
    },
    "entries that are no objects": lambda count: {"mcpServers": {f"s{number}": 5 for number in range(count)}},
    "entries without a command": lambda count: {"mcpServers": {f"s{number}": {} for number in range(count)}},
    "unknown fields": lambda count: _one({"command": "x", **_wrong("comand", count)}),
    "unknown fields of oauth": lambda count: _one(
        {"url": "https://a.example/", "oauth": _wrong("clientI", count)}
    ),
    "unknown fields of tls": lambda count: _one({"url": "https://a.example/", "tls": _wrong("cer", count)}),
    "variables that are not set": lambda count: _one(
        {"command": "x", "args": [f"${{V{number}}}" for number in range(count)]}
    ),
    "header names": lambda count: _one({"url": "https://a.example/", "headers": _wrong("h ", count)}),
    "rules that are no text": lambda count: {"permissions": {"allow": [5] * count}},
    "wrong variables": lambda count: {"env": {f"MCP_TIMEOUT{number}": [] for number in range(count)}},
    "wrong policy": lambda count: {"deniedMcpServers": [{"serverNam": "x"}] * count},
    "prohibited names that are nearly those of many servers": lambda count: {
        "mcpServers": {f"server-name-{number}": {"command": "x"} for number in range(min(count, 256))},
        "disabledMcpServers": [f"server-nam-{number}" for number in range(min(count, 900))],
    },
    "unknown hook events": lambda count: {"hooks": {f"PreTool{number}": [] for number in range(count)}},
    "unknown fields of hook groups": lambda count: _hooks([{"x": 1, "hooks": []} for _ in range(count)]),
    "hooks that cannot be used": lambda count: _hooks([{"hooks": [{"type": "x"}]} for _ in range(count)]),
}


def _one(entry: dict[str, Any]) -> dict[str, Any]:
    return {"mcpServers": {"s": entry}}


def _hooks(groups: list[Any]) -> dict[str, Any]:
    return {"hooks": {"PreToolUse": groups}}


def _wrong(start: str, count: int) -> dict[str, Any]:
    return {f"{start}{number}": "x" for number in range(count)}


def _problems() -> tuple[str, ...]:
    """The problems that every command reads first."""
    found = seen()
    warned = (warning for server in found.servers.values() for warning in server.warnings)
    return (*found.problems, *configured.from_parts(found.parts).problems, *warned)


def _seconds() -> float:
    """Process time, which is independent of other programs. Garbage collection is disabled: it takes longer
    the more tests have run."""
    gc.disable()
    try:
        start = time.process_time()
        _problems()
        return time.process_time() - start
    finally:
        gc.enable()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(("what", "place"), some(FILES, PLACES, each=2))
def test_t170_a_file_of_problems_is_read_in_linear_time_and_few_are_reported(
    home: Path, place: str, what: str
):
    file = home / PLACES[place]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(FILES[what](FEW)))
    few = shortest(_seconds)
    file.write_text(json.dumps(FILES[what](MANY)))
    many = shortest(_seconds, below=few * GROWTH)
    assert many < few * GROWTH, f"{FEW}: {few:.3f} s, {MANY}: {many:.3f} s"
    # Problems of a file, of its policy and of its hooks.
    assert len(_problems()) <= 3 * (PROBLEM_LIMIT + 1)
