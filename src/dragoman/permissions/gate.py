"""The gate every call passes.

I own: the decision for one call, with its reason. Until rules exist, a mode decides alone or a
person is asked; without anyone to ask, the answer is no. A yes for the session is bound to the tool's
definition: one that became another is asked about again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from dragoman.catalog.tools import BuiltinTool, Tool
from dragoman.events import EventBus, PermissionAsked
from dragoman.interaction import Interaction, PermissionAnswer, PermissionQuestion

PermissionMode = Literal["default", "bypassPermissions", "dontAsk"]
MODES: Final[tuple[PermissionMode, ...]] = ("default", "bypassPermissions", "dontAsk")


class Decision(Struct, frozen=True):
    allowed: bool
    reason: str


class Gate(Protocol):
    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> Decision: ...


_BYPASSED = Decision(True, "permission mode bypassPermissions")

_GRANTED = Decision(True, "allowed by the person for this session")
_OUR_OWN = Decision(True, "it only looks at what the host knows")


class ModeGate:
    def __init__(self, mode: PermissionMode, interaction: Interaction | None, bus: EventBus) -> None:
        self._mode = mode
        self._interaction = interaction
        self._bus = bus
        self._granted: dict[tuple[str, str], str] = {}
        """Tools that were allowed for the session, by server and name, and their digests then."""

    async def decide(self, tool: Tool, arguments: Mapping[str, Any]) -> Decision:
        if self._mode == "bypassPermissions":
            return _BYPASSED
        if isinstance(tool, BuiltinTool) and not tool.needs_permission:
            return _OUR_OWN
        if self._mode == "dontAsk":
            return Decision(False, "permission mode dontAsk refuses what no rule allows")
        if self._interaction is None:
            return Decision(
                False, "there is nobody to ask; give the host an interaction or another permission_mode"
            )
        granted = self._granted.get((tool.server, tool.name))
        if granted is not None and granted == tool.digest:
            return _GRANTED
        question = PermissionQuestion(
            server=tool.server,
            tool=tool.name,
            title=tool.title,
            arguments=arguments,
            has_changed=granted is not None,
        )
        answer = await self._interaction.allow(question)
        self._remember(tool, answer)
        said = "allowed by the person" if answer.allowed else "the person said no"
        decision = Decision(answer.allowed, f"{said}: {answer.word}" if answer.word else said)
        self._bus.publish(
            PermissionAsked(
                server=tool.server, tool=tool.name, allowed=decision.allowed, reason=decision.reason
            )
        )
        return decision

    def forget(self, server: str) -> None:
        """A server's entry is another now, or gone: no yes given to it holds."""
        for key in [key for key in self._granted if key[0] == server]:
            del self._granted[key]

    def _remember(self, tool: Tool, answer: PermissionAnswer) -> None:
        # A yes to a built-in tool is one to these arguments: it may read from any server.
        if answer.allowed and answer.for_session and not isinstance(tool, BuiltinTool):
            self._granted[tool.server, tool.name] = tool.digest
        else:
            self._granted.pop((tool.server, tool.name), None)
