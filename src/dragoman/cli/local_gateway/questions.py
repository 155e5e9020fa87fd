"""Questions during a call through a local gateway, asked in the terminal of the calling command."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypeVar

import msgspec

from dragoman.cli.terminal_interaction import CommandLineUser, is_allowed_by_command
from dragoman.config.scopes import Sources
from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    RelatedCall,
    UrlElicitation,
)

T = TypeVar("T")
Ask = Callable[[str, Any], Awaitable[Any]]
"""Sends a question of a kind to the calling command; returns the answer."""
_KINDS: Final[dict[str, Any]] = {
    "allow": PermissionQuestion,
    "elicit_form": FormElicitation,
    "elicit_url": UrlElicitation,
    "wait_for_url": UrlElicitation,
}


async def ask(kind: str, value: Any, *, yes: bool) -> Any:
    """Asks the person; runs in the calling command."""
    user = CommandLineUser(Sources.here(), assumes_yes=yes)
    return msgspec.to_builtins(await getattr(user, kind)(msgspec.convert(value, _KINDS[kind])))


class CallingTerminals:
    """The `Interaction` of the gateway's host. Each question goes to the command whose call it belongs to."""

    asks_in_parallel = True

    def __init__(self) -> None:
        self._commands: dict[str, tuple[Ask, bool]] = {}
        """The connected commands by call id: how to ask, and whether the command was given --yes."""

    def add(self, call_id: str, ask: Ask, *, yes: bool) -> None:
        self._commands[call_id] = (ask, yes)

    def remove(self, call_id: str) -> None:
        del self._commands[call_id]

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        _, yes = self._command(question.call_id)
        if is_allowed_by_command(question, assumes_yes=yes):
            return PermissionAnswer(True, "typed on the command line")
        return await self._asked(question.call_id, "allow", question, PermissionAnswer)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return await self._asked(_call_of(question.calls), "elicit_form", question, FormAnswer)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        shape: Any = Literal["accept", "decline", "cancel"]
        return await self._asked(_call_of(question.calls), "elicit_url", question, shape)

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        return await self._asked(_call_of(question.calls), "wait_for_url", question, bool)

    async def _asked(self, call_id: str, kind: str, question: object, shape: type[T]) -> T:
        ask, _ = self._command(call_id)
        try:
            return msgspec.convert(await ask(kind, msgspec.to_builtins(question)), shape)
        except msgspec.ValidationError as error:
            raise NoInteraction(f"the answer cannot be read: {error}") from None

    def _command(self, call_id: str) -> tuple[Ask, bool]:
        if call_id not in self._commands:
            raise NoInteraction("it is not known which command's call the question belongs to")
        return self._commands[call_id]


def _call_of(calls: tuple[RelatedCall, ...]) -> str:
    return calls[0].call_id if len(calls) == 1 else ""


class Relay:
    """Sends questions to one command, one at a time, and receives the answers."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._turn = asyncio.Lock()
        self._answer: asyncio.Future[Any] | None = None

    async def ask(self, kind: str, value: Any) -> Any:
        async with self._turn:
            self._answer = asyncio.get_running_loop().create_future()
            self._send({"question": kind, "value": value})
            return await self._answer

    def take(self, message: dict[str, Any]) -> None:
        """Receives an answer, or the message that there is none."""
        if self._answer is None or self._answer.done():
            return
        if "answer" in message:
            self._answer.set_result(message["answer"])
        else:
            self._answer.set_exception(NoInteraction(str(message.get("refused", ""))))
