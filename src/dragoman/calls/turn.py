"""The calls that a model makes in one turn: calls that only read run concurrently, all others in order.

Each call has its outcome, whatever happens to the others. Consecutive calls without a writing call between
them are made at the same time; a writing call waits for all calls before it, and all calls after it wait for
it. Whether a tool only reads is what its server declares: at worst, calls run concurrently that should not.
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


async def call_in_turn(
    calls: Sequence[Wanted], make: Make, is_parallel: Callable[[str], bool]
) -> list[CallOutcome]:
    """The outcomes, in the order of the calls. A failed connection is an outcome, too."""
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
