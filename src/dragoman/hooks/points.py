"""The interface of hooks for the pipeline and the host, and the results of hooks at each point.

`NoHooks` implements it where no hooks are configured; `active.ActiveHooks` runs hooks. `contract.py` defines
what a hook is given and may answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct

from dragoman.catalog.tools import Tool
from dragoman.hooks.verdicts import HookDecision
from dragoman.interaction import FormAnswer

NO_ARGUMENTS: Final[Mapping[str, Any]] = {}


class Before(Struct, frozen=True):
    """What the hooks before a call came to."""

    arguments: Mapping[str, Any]
    """To go on with: the very ones that were given, if no hook changed them."""
    hook_decision: HookDecision | None = None
    """The strictest of all."""
    context: tuple[str, ...] = ()
    """For the model, added to the outcome. Clean and bounded."""


class After(Struct, frozen=True):
    """What the hooks after a call came to."""

    context: tuple[str, ...] = ()
    replacement: str | None = None
    """The result's text as the model is to see it; None: as it is."""


class Hooks(Protocol):
    """Nothing here raises because of a hook: one that fails is reported, and blocks where it is to."""

    def wants(self, event: str, subject: str | Tool, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> bool:
        """Whether any hook would run: cheap, and mostly no. The subject of events of calls is the tool (and
        the arguments, which may name a server), of the others the text that `contract.EVENTS` says."""
        ...

    async def before_call(self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = "") -> Before:
        """PreToolUse."""
        ...

    async def after_call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        text: str,
        *,
        is_error: bool,
        error_code: str | None = None,
        call_id: str = "",
    ) -> After:
        """PostToolUse, or PostToolUseFailure for an error."""
        ...

    async def permission_requested(
        self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = ""
    ) -> HookDecision | None:
        """PermissionRequest: allow or deny in the person's place; None: ask the person."""
        ...

    async def elicited(self, server: str, message: str, schema: Mapping[str, Any]) -> FormAnswer | None:
        """Elicitation: the answer in the person's place; None: ask the person."""
        ...

    async def elicitation_answered(self, server: str, answer: FormAnswer) -> FormAnswer:
        """ElicitationResult: the answer to send."""
        ...

    async def tell(self, event: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        """Any other event; returns when every hook has ended. What is returned is context for the model,
        and only `SessionStart` has any."""
        ...

    async def close(self) -> None:
        """Ends every hook that runs; none is started after that."""
        ...


class NoHooks:
    def wants(self, event: str, subject: str | Tool, arguments: Mapping[str, Any] = NO_ARGUMENTS) -> bool:
        return False

    async def before_call(self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = "") -> Before:
        return Before(arguments)

    async def after_call(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        text: str,
        *,
        is_error: bool,
        error_code: str | None = None,
        call_id: str = "",
    ) -> After:
        return _NOTHING

    async def permission_requested(
        self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str = ""
    ) -> HookDecision | None:
        return None

    async def elicited(self, server: str, message: str, schema: Mapping[str, Any]) -> FormAnswer | None:
        return None

    async def elicitation_answered(self, server: str, answer: FormAnswer) -> FormAnswer:
        return answer

    async def tell(self, event: str, facts: Mapping[str, Any]) -> tuple[str, ...]:
        return ()

    async def close(self) -> None:
        return None


_NOTHING = After()
