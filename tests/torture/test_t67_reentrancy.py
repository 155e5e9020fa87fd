"""T67: callbacks may use the host, and their failures stay their own."""

import asyncio
from contextlib import suppress

import pytest

from dragoman import CallTimeout, DragomanError, Host
from dragoman.events import ServerLogged, ToolsChanged
from tests.servers import zoo
from tests.torture.arena import BYSTANDER, at_once, until


async def test_t67_a_listener_to_list_changes_may_list_and_call(arena, era):
    async with arena(zoo("changes_its_list.py", protocol=era)) as a:
        listed: list[int] = []

        async def follow() -> None:
            async for event in a.host.events():
                if isinstance(event, ToolsChanged) and event.server == "hostile":
                    listed.append(len([t for t in a.host.tools() if t.server == "hostile"]))
                    await a.call("echo", message="from the listener")

        follower = asyncio.create_task(follow())
        await asyncio.sleep(0)
        async with at_once(5):
            for _ in range(5):
                await a.call("grow")
            await until(lambda: a.view.tool_count == 2 + 5)
            assert await a.call("echo", message="and I") == "and I"
        await until(lambda: listed and listed[-1] == 7)
        follower.cancel()


async def test_t67_a_burst_of_change_notices_is_one_reading_or_two(arena, era):
    async with arena(zoo("changes_its_list.py", protocol=era)) as a:
        async with at_once(5):
            await a.call("grow", times=1000)
            await until(lambda: a.view.tool_count == 3)
        await a.serves_still()
        assert len(a.happened(ToolsChanged)) <= 1 + 3


@pytest.mark.parametrize("other", ["hostile", BYSTANDER])
async def test_t67_an_async_progress_callback_may_call_another_tool(arena, era, other):
    said: list[str] = []
    async with arena(zoo("counts_slowly.py", protocol=era)) as a:

        async def on_progress(progress) -> None:
            message = f"at {progress.progress:g}"
            said.append((await a.host.call(f"mcp__{other}__echo", {"message": message})).text)

        async with at_once():
            assert await a.call("count", to=5, on_progress=on_progress) == "counted to 5"
        assert said[-1] == "at 5"


async def test_t67_a_callback_may_start_the_same_call_again(arena, era):
    async with arena(zoo("counts_slowly.py", protocol=era)) as a:

        async def dive(depth: int) -> str:
            async def on_progress(_) -> None:
                if depth:
                    assert await dive(depth - 1) == "counted to 1"

            return await a.call("count", to=1, on_progress=on_progress)

        async with at_once():
            assert await dive(5) == "counted to 1"


def raises(_) -> None:
    raise ValueError("the callback's own fault")


async def raises_later(_) -> None:
    await asyncio.sleep(0)
    raise ValueError("the callback's own fault")


@pytest.mark.parametrize("callback", [raises, raises_later])
async def test_t67_a_callback_that_raises_is_reported_and_the_call_goes_on(arena, era, callback):
    async with arena(zoo("counts_slowly.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("count", to=50, on_progress=callback) == "counted to 50"
        await until(lambda: any(event.level == "error" for event in a.happened(ServerLogged)))
        errors = [event.text for event in a.happened(ServerLogged) if event.level == "error"]
        assert len(errors) == 1
        assert "ValueError: the callback's own fault" in errors[0]
        await a.serves_still()


@pytest.mark.parametrize("ending", ["reply", "timeout", "cancel"])
async def test_t67_a_callback_that_never_returns_does_not_outlive_its_call(arena, era, ending):
    entered = asyncio.Event()

    async def hang(_) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with arena(zoo("floods_progress.py", protocol=era)) as a:
        count = 10 if ending == "reply" else 0
        call = asyncio.create_task(a.call("report", kind="growing", count=count, seconds=1, on_progress=hang))
        await entered.wait()
        if ending == "cancel":
            call.cancel()
        expected = {"reply": None, "timeout": CallTimeout, "cancel": asyncio.CancelledError}[ending]
        async with at_once(1 + 2):
            done, _ = await asyncio.wait([call], timeout=10)
        if not done:
            call.cancel()
        assert done, "the call is over, however long its callback takes"
        error = None if call.cancelled() else call.exception()
        assert type(error) is (expected or type(None)) or (call.cancelled() and ending == "cancel")


async def test_t67_a_callback_may_cancel_its_own_call(arena, era):
    async with arena(zoo("floods_progress.py", protocol=era)) as a:
        call: asyncio.Task[str] = asyncio.create_task(
            a.call("report", kind="growing", count=50_000, on_progress=lambda _: call.cancel())
        )
        with pytest.raises(asyncio.CancelledError):
            async with at_once():
                await call
        async with at_once(10):
            assert await a.call("echo", message="next") == "next"


async def test_t67_a_callback_may_close_the_host(arena):
    """The call it belongs to ends one way or another, and nothing hangs."""
    async with arena() as a:
        async with Host({"server": zoo("counts_slowly.py")}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=10)

            async def close(_) -> None:
                await host.close()

            async with at_once(6):
                with suppress(DragomanError):
                    await host.call("mcp__server__count", {"to": 1000}, on_progress=close)
        await a.bystander.call_often()
