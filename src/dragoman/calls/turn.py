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
from dragoman.calls.progress import OnProgress
from dragoman.errors import CallError

AT_ONCE: Final = 16

Make = Callable[[int], Awaitable[CallOutcome]]
"""Makes the call at a place in the turn."""


async def call_in_turn(
    names: Sequence[str], make: Make, is_parallel: Callable[[str], bool]
) -> list[CallOutcome]:
    """The outcomes of calls of these tools, in the order of the calls. A failed connection is an outcome,
    too."""
    places = asyncio.Semaphore(AT_ONCE)

    async def made(number: int) -> CallOutcome:
        async with places:
            try:
                return await make(number)
            except CallError as error:
                return outcome_of_error(error.server or "", names[number], error)

    outcomes: list[CallOutcome] = []
    for together in _groups(names, is_parallel):
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(made(number)) for number in together]
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # the host was closed; the others only end with it
        outcomes += [task.result() for task in tasks]
    return outcomes


def _groups(names: Sequence[str], is_parallel: Callable[[str], bool]) -> Iterator[list[int]]:
    """Calls that may be made at once, in order."""
    for reads, group in groupby(range(len(names)), lambda number: is_parallel(names[number])):
        if reads:
            yield list(group)
        else:
            yield from ([number] for number in group)


async def call_all_in_turn(
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    call: Callable[..., Awaitable[CallOutcome]],
    is_parallel: Callable[[str], bool],
    on_progress: Sequence[OnProgress | None],
) -> list[CallOutcome]:
    """`call`: that of a host or a toolbox. `on_progress`: for each call, or for none."""
    if on_progress and len(on_progress) != len(calls):
        raise ValueError(f"on_progress has {len(on_progress)} callbacks for {len(calls)} calls")

    def make(number: int) -> Awaitable[CallOutcome]:
        name, arguments = calls[number]
        return call(name, arguments, on_progress=on_progress[number] if on_progress else None)

    return await call_in_turn([name for name, _ in calls], make, is_parallel)
