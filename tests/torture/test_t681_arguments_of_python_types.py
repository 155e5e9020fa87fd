"""T681: a deny rule and a hook receive the serialized form of an argument that is an `Enum` member, a set,
a dataclass or encoded JSON."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman import Host, hook
from dragoman.errors import InvalidArguments, PermissionRefused
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-1")

PASSWD = "/etc/passwd"


class Place(enum.Enum):
    PASSWD = PASSWD


class Key(enum.Enum):
    PATH = "path"


class Text(str):
    pass


@dataclass
class File:
    name: str


class Entry(msgspec.Struct):
    name: str


VALUES: list[Any] = [
    Place.PASSWD,
    [Place.PASSWD],
    (Place.PASSWD,),
    {PASSWD},
    frozenset({PASSWD}),
    File(PASSWD),
    Entry(PASSWD),
    Text(PASSWD),
    msgspec.Raw(b'"/etc/passwd"'),
    msgspec.Raw(b'"\\u002fetc/passwd"'),
]
RULES = {"allow": ["mcp__box"], "deny": ["mcp__box__read(path=/etc/*)"]}


def box(received: list[Any]) -> InMemoryServer:
    server = InMemoryServer("box")

    def read(arguments: Mapping[str, Any], _: object) -> str:
        received.append(arguments)
        return "read"

    server.add_tool("read", read)
    return server


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
async def test_t681_a_deny_rule_about_an_argument_matches_the_serialized_value(home: Path, value: Any):
    received: list[Any] = []
    async with Host({"box": box(received)}, rules=RULES) as host:
        await host.ready()
        outcome = await host.call("mcp__box__read", {"path": value})
    assert isinstance(outcome.error, PermissionRefused)
    assert received == []


async def test_t681_a_deny_rule_matches_a_key_inside_a_serialized_object(home: Path):
    received: list[Any] = []
    rules = {"allow": ["mcp__box"], "deny": ["mcp__box__read(file.path=/etc/*)"]}
    async with Host({"box": box(received)}, rules=rules) as host:
        await host.ready()
        await host.call("mcp__box__read", {"file": {Key.PATH: PASSWD}})
        await host.call("mcp__box__read", {"file": msgspec.Raw(b'{"path": "/etc/passwd"}')})
    assert received == []


async def test_t681_a_hook_receives_the_serialized_arguments(home: Path):
    received: list[Any] = []
    seen: list[Any] = []
    watching = hook(lambda given: seen.append(given["tool_input"]), "PreToolUse")
    async with Host({"box": box(received)}, rules={"allow": ["mcp__box"]}, hooks=[watching]) as host:
        await host.ready()
        await host.call("mcp__box__read", {"path": Place.PASSWD, "file": File("a")})
    assert seen == received == [{"path": PASSWD, "file": {"name": "a"}}]


async def test_t681_a_change_by_a_hook_is_checked_in_serialized_form(home: Path):
    received: list[Any] = []
    changed = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"path": Place.PASSWD}}}
    changing = hook(lambda given: changed, "PreToolUse")
    async with Host({"box": box(received)}, rules=RULES, hooks=[changing]) as host:
        await host.ready()
        outcome = await host.call("mcp__box__read", {"path": "a"})
    assert isinstance(outcome.error, PermissionRefused)
    assert received == []


async def test_t681_invalid_encoded_json_is_refused(home: Path):
    received: list[Any] = []
    async with Host({"box": box(received)}, rules=RULES) as host:
        await host.ready()
        outcome = await host.call("mcp__box__read", {"x": msgspec.Raw(b'1,"path":"/etc/passwd"')})
    assert isinstance(outcome.error, InvalidArguments)
    assert received == []
