"""The queue of questions: one at a time, servers in turn, and nothing left behind."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dragoman.errors import HostClosed
from dragoman.questions import Questions, TooManyQuestions, current_question


class Screen:
    """Shows questions by name until a test answers them."""

    def __init__(self) -> None:
        self.questions = Questions(None)
        self.shown: list[str] = []
        self.open: dict[str, asyncio.Future[str]] = {}

    async def _show(self, name: str) -> str:
        self.shown.append(name)
        future = self.open[name] = asyncio.get_running_loop().create_future()
        try:
            return await future
        finally:
            del self.open[name]

    async def ask(self, server: str, name: str, limit: int | None = None) -> str:
        async with self.questions.turn(server, limit=limit):
            return await self.questions.show(self._show(name))

    async def start(self, *names: str) -> list[asyncio.Task[str]]:
        """Asks these questions; the first letter of each is the server."""
        tasks = [asyncio.create_task(self.ask(name[0], name)) for name in names]
        await settle()
        return tasks

    async def answer_all(self) -> None:
        while self.open:
            next(iter(self.open.values())).set_result("yes")
            await settle()


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


@pytest.fixture
async def screen() -> Screen:
    return Screen()


@pytest.mark.requirement("ASK-3")
async def test_one_question_is_shown_at_a_time_and_servers_take_turns(screen: Screen):
    tasks = await screen.start("a1", "a2", "a3", "b1", "c1", "b2")
    assert screen.shown == ["a1"]
    await screen.answer_all()

    assert screen.shown == ["a1", "a2", "b1", "c1", "a3", "b2"]
    assert [await task for task in tasks] == ["yes"] * 6


async def test_a_cancelled_question_is_removed_from_the_queue_or_the_screen(screen: Screen):
    tasks = await screen.start("a1", "b1", "b2", "c1")
    tasks[1].cancel()
    tasks[0].cancel()
    await settle()
    assert list(screen.open) == ["b2"]
    tasks[2].cancel()
    await settle()
    await screen.answer_all()

    assert screen.shown == ["a1", "b2", "c1"]
    assert [task.cancelled() for task in tasks] == [True, True, True, False]


async def test_a_turn_given_at_the_moment_of_cancellation_passes_to_the_next_question(screen: Screen):
    tasks = await screen.start("a1", "b1", "c1")
    screen.open["a1"].set_result("yes")
    while not tasks[0].done():
        await asyncio.sleep(0)  # b1 has been given its turn, and does not run yet
    tasks[1].cancel()
    await settle()

    assert list(screen.open) in (["c1"], ["b1"])
    await screen.answer_all()
    assert tasks[2].done()


async def test_more_questions_of_one_server_than_allowed_are_refused_and_others_are_not(screen: Screen):
    tasks = await screen.start("a0")
    waiting = [asyncio.create_task(screen.ask("a", f"a{n}", limit=2)) for n in range(1, 4)]
    waiting.append(asyncio.create_task(screen.ask("b", "b1", limit=2)))
    await settle()

    assert isinstance(waiting[2].exception(), TooManyQuestions)
    await screen.answer_all()
    assert screen.shown == ["a0", "a1", "b1", "a2"]
    waiting[0].cancel()
    assert tasks[0].done()


async def test_removed_questions_free_their_places(screen: Screen):
    await screen.start("a0")
    for _ in range(5):
        task = asyncio.create_task(screen.ask("a", "a1", limit=1))
        await settle()
        assert not task.done()
        task.cancel()
        await settle()
    await screen.answer_all()


@pytest.mark.parametrize("how", ["by the caller's own context", "by the context of a call"])
async def test_a_nested_question_does_not_wait_for_the_outer_one(screen: Screen, how: str):
    async def outer() -> str:
        within = current_question()
        assert within is not None
        if how == "by the caller's own context":
            return await screen.ask("b", "inner")
        # As the question of a server, which arrives in a task of its own.
        return await in_another_context(lambda: inner(within))

    async def inner(within: object) -> str:
        assert current_question() is None
        async with screen.questions.turn("b", within=within):  # type: ignore[arg-type]
            return await screen.questions.show(screen._show("inner"))

    async def ask_outer() -> str:
        async with screen.questions.turn("a"):
            return await screen.questions.show(outer())

    task = asyncio.create_task(ask_outer())
    await settle()
    assert screen.shown == ["inner"]
    await screen.answer_all()
    assert await task == "yes"


async def in_another_context(work: Callable[[], Awaitable[str]]) -> str:
    import contextvars

    async def run() -> str:
        return await work()

    return await asyncio.get_running_loop().create_task(run(), context=contextvars.Context())


async def test_a_question_of_work_whose_own_question_has_ended_waits_in_the_queue(screen: Screen):
    later: list[asyncio.Task[str]] = []
    may_ask = asyncio.Event()

    async def ask_later() -> str:
        await may_ask.wait()
        return await screen.ask("a", "later")

    async def outer() -> str:
        later.append(asyncio.create_task(ask_later()))
        return "done"

    async with screen.questions.turn("a"):
        await screen.questions.show(outer())
    await screen.start("b1")
    may_ask.set()
    await settle()
    assert screen.shown == ["b1"]
    await screen.answer_all()
    assert await later[0] == "yes"


async def test_closing_cancels_shown_and_waiting_questions(screen: Screen):
    tasks = await screen.start("a1", "a2", "b1")
    screen.questions.close()
    await asyncio.wait(tasks)

    assert [type(task.exception()) for task in tasks] == [HostClosed] * 3
    with pytest.raises(HostClosed):
        await screen.ask("a", "a3")
    assert screen.shown == ["a1"]


@pytest.mark.parametrize("steps", range(5))
async def test_a_cancelled_question_raises_cancelled_error_at_any_time_of_its_turn(
    screen: Screen, steps: int
):
    tasks = await screen.start("a1", "b1", "b2", "c1")
    screen.open["a1"].set_result("yes")
    for _ in range(steps):
        await asyncio.sleep(0)
    tasks[1].cancel()
    await settle()
    await screen.answer_all()

    assert [task.cancelled() for task in tasks] == [False, True, False, False]
    assert sorted(set(screen.shown) - {"b1"}) == ["a1", "b2", "c1"]
