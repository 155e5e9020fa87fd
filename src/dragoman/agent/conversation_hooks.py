"""The hook events of one conversation: its beginning and end, prompts, answers, summaries.

A subagent has only the event `SubagentStop`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, NamedTuple

from dragoman.hooks.active import ActiveHooks
from dragoman.hooks.events import STOP_LIMIT
from dragoman.hooks.merging import Submitted

END_SECONDS: Final = 5.0
"""The time limit for all hooks of `SessionEnd`."""


class Subagent(NamedTuple):
    """A subagent, as hooks see it."""

    agent_id: str
    agent_type: str
    agent_transcript_path: str


class ConversationHooks:
    def __init__(self, hooks: ActiveHooks | None = None, subagent: Subagent | None = None) -> None:
        self._hooks = hooks
        self._main = hooks if subagent is None else None
        """The hooks of events that only the main conversation has; None for a subagent."""
        self._subagent = subagent

    async def started(self, source: str) -> tuple[str, ...]:
        """Runs `SessionStart` hooks. Returns texts for the model."""
        return () if self._main is None else await self._main.notify("SessionStart", {"source": source})

    async def ended(self, reason: str) -> None:
        """Runs `SessionEnd` hooks."""
        if self._main is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(END_SECONDS):
                    await self._main.notify("SessionEnd", {"reason": reason})

    async def prompt_submitted(self, prompt: str) -> Submitted:
        """Runs `UserPromptSubmit` hooks."""
        return Submitted() if self._main is None else await self._main.prompt_submitted(prompt)

    async def before_compaction(self, trigger: str, instructions: str) -> None:
        """Runs `PreCompact` hooks."""
        if self._main is not None:
            await self._main.notify("PreCompact", {"trigger": trigger, "custom_instructions": instructions})

    async def stopping(self, text: str, times: int) -> str | None:
        """Runs `Stop` or `SubagentStop` hooks. Returns why the model has to continue; None: it may stop.
        `times`: how often hooks made it continue since the prompt."""
        if self._hooks is None or times >= STOP_LIMIT:
            return None
        facts = {"stop_hook_active": times > 0, "last_assistant_message": text}
        if self._subagent is None:
            return await self._hooks.stopping("Stop", facts)
        return await self._hooks.stopping("SubagentStop", {**self._subagent._asdict(), **facts})
