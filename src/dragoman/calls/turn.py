"""The calls a model asks for in one turn: what only reads runs side by side, all else in order.

I own: who waits for whom, and that each call has its outcome, whatever becomes of the others. Calls that
follow one another without a writing one between them are made at once; a writing one waits for all before
it, and all after it wait for it. Whether a tool only reads is its server's word: at worst calls overlap that
need not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.errors import CallError

AT_ONCE: Final = 16

Wanted = tuple[str, Mapping[str, Any]]
"""A tool's name, and its arguments."""
Make = Callable[[str, Mapping[str, Any]], Awaitable[CallOutcome]]


async def take_turn(
    calls: Sequence[Wanted], make: Make, is_parallel: Callable[[str], bool]
) -> list[CallOutcome]:
    """The outcomes, in the order of the calls. A failure of the plumbing is one, too."""
    places = asyncio.Semaphore(AT_ONCE)

    async def made(wanted: Wanted) -> CallOutcome:
        async with places:
            try:
                return await make(*wanted)
            except CallError as error:
                return outcome_of_error(error.server or "", wanted[0], error)

    outcomes: list[CallOutcome] = []
    for together in _groups(calls, is_parallel):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(made(wanted)) for wanted in together]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # the host was closed; the others only end with it
        outcomes += [task.result() for task in tasks]
    return outcomes


def _groups(calls: Sequence[Wanted], is_parallel: Callable[[str], bool]) -> Iterator[list[Wanted]]:
    """Calls that may be made at once, in order."""
    for reads, group in groupby(calls, lambda wanted: is_parallel(wanted[0])):
        if reads:
            yield list(group)
        else:
            yield from ([wanted] for wanted in group)
