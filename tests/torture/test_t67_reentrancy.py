"""T67: Callbacks may use the host, and their exceptions do not affect it."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from dragoman import DragomanError, Host, PermissionAnswer
from dragoman.errors import CallTimeout
from dragoman.events import ServerLogged, ToolsChanged
from dragoman.hooks.declared import hook
from tests.servers import stdio_server
from tests.torture.bystander_host import BYSTANDER, at_once, until


async def test_t67_a_subscriber_to_list_changes_may_list_and_call(bystander_host, era):
    async with bystander_host(stdio_server("changes_its_list.py", protocol=era)) as a:
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


async def test_t67_a_burst_of_change_notifications_causes_one_or_two_list_requests(bystander_host, era):
    async with bystander_host(stdio_server("changes_its_list.py", protocol=era)) as a:
        async with at_once(5):
            await a.call("grow", times=1000)
            await until(lambda: a.view.tool_count == 3)
        await a.serves_still()
        assert len(a.happened(ToolsChanged)) <= 1 + 3


@pytest.mark.parametrize("other", ["hostile", BYSTANDER])
async def test_t67_an_async_progress_callback_may_call_another_tool(bystander_host, era, other):
    said: list[str] = []
    async with bystander_host(stdio_server("counts_slowly.py", protocol=era)) as a:

        async def on_progress(progress) -> None:
            message = f"at {progress.progress:g}"
            said.append((await a.host.call(f"mcp__{other}__echo", {"message": message})).text)

        async with at_once():
            assert await a.call("count", to=5, on_progress=on_progress) == "counted to 5"
        assert said[-1] == "at 5"


async def test_t67_a_callback_may_start_the_same_call_again(bystander_host, era):
    async with bystander_host(stdio_server("counts_slowly.py", protocol=era)) as a:

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
async def test_t67_a_callback_that_raises_is_reported_and_the_call_continues(bystander_host, era, callback):
    async with bystander_host(stdio_server("counts_slowly.py", protocol=era)) as a:
        async with at_once():
            assert await a.call("count", to=50, on_progress=callback) == "counted to 50"
        await until(lambda: any(event.level == "error" for event in a.happened(ServerLogged)))
        errors = [event.text for event in a.happened(ServerLogged) if event.level == "error"]
        assert len(errors) == 1
        assert "ValueError: the callback's own fault" in errors[0]
        await a.serves_still()


@pytest.mark.parametrize("ending", ["reply", "timeout", "cancel"])
async def test_t67_a_callback_that_never_returns_ends_with_its_call(bystander_host, era, ending):
    entered = asyncio.Event()

    async def hang(_) -> None:
        entered.set()
        await asyncio.Event().wait()

    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
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


async def test_t67_a_callback_may_cancel_its_own_call(bystander_host, era):
    async with bystander_host(stdio_server("floods_progress.py", protocol=era)) as a:
        call: asyncio.Task[str] = asyncio.create_task(
            a.call("report", kind="growing", count=50_000, on_progress=lambda _: call.cancel())
        )
        with pytest.raises(asyncio.CancelledError):
            async with at_once():
                await call
        async with at_once(10):
            assert await a.call("echo", message="next") == "next"


async def test_t67_a_callback_may_close_the_host(bystander_host):
    """The call it belongs to ends with a result or an error, and nothing hangs."""
    async with bystander_host() as a:
        async with Host(
            {"server": stdio_server("counts_slowly.py")}, permission_mode="bypassPermissions"
        ) as host:
            await host.ready(timeout=10)

            async def close(_) -> None:
                await host.close()

            async with at_once(6):
                with suppress(DragomanError):
                    await host.call("mcp__server__count", {"to": 1000}, on_progress=close)
        await a.bystander.call_often()


# --- through questions and hooks ---


class CallsBeforeAnswering:
    """Calls a tool before it answers; the question about that call does the same, and so on."""

    def __init__(self, depth: int) -> None:
        self.depth, self.asked = depth, 0
        self.host: Host | None = None

    async def allow(self, question: Any) -> PermissionAnswer:
        self.asked += 1
        depth = question.arguments.get("message", "")
        if self.host is not None and depth.isdigit() and int(depth) < self.depth:
            deeper = str(int(depth) + 1)
            found = await self.host.call("mcp__hostile__echo", {"message": deeper})
            return PermissionAnswer(not found.is_error)
        return PermissionAnswer(True)


ALLOW_BYSTANDER = {"permission_mode": "default", "rules": {"allow": [f"mcp__{BYSTANDER}"]}}


@pytest.mark.requirement("PRM-3")
@pytest.mark.parametrize("depth", [1, 5])
async def test_t67_an_interaction_may_call_tools_and_be_asked_about_them(bystander_host, era, depth):
    user = CallsBeforeAnswering(depth)
    entry = stdio_server("holds_replies.py", protocol=era)
    async with bystander_host(entry, interaction=user, **ALLOW_BYSTANDER) as a:
        user.host = a.host
        async with at_once():
            assert await a.call("echo", message="0") == "0"
        assert user.asked == depth + 1
        async with at_once():
            outcomes = await asyncio.gather(*(a.outcome("echo", message=str(depth)) for _ in range(20)))
        assert not any(outcome.is_error for outcome in outcomes)


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "PermissionRequest", "Notification"])
async def test_t67_a_hook_may_call_tools(bystander_host, era, event):
    said: list[str] = []

    async def ask_the_bystander(given: Any) -> None:
        said.append((await a.host.call(f"mcp__{BYSTANDER}__echo", {"message": "from a hook"})).text)

    matcher = "" if event == "Notification" else "mcp__hostile__echo"
    options: dict[str, Any] = {
        **ALLOW_BYSTANDER,
        "interaction": CallsBeforeAnswering(0),
        "hooks": [hook(ask_the_bystander, event, matcher=matcher)],
    }
    async with bystander_host(stdio_server("holds_replies.py", protocol=era), **options) as a:
        async with at_once():
            assert await a.call("echo", message="x") == "x"
        await until(lambda: said == ["from a hook"])


@pytest.mark.requirement("PRM-5")
async def test_t67_a_hook_may_call_the_tool_it_is_registered_for(bystander_host, era):
    async def again(given: Any) -> None:
        deeper = str(int(given["tool_input"]["message"]) + 1)
        if deeper < "6":
            assert await a.call("echo", message=deeper) == deeper

    hooks = [hook(again, "PreToolUse", matcher="mcp__hostile__echo", blocks_on_error=True)]
    async with bystander_host(stdio_server("holds_replies.py", protocol=era), hooks=hooks) as a, at_once():
        assert await a.call("echo", message="0") == "0"


@pytest.mark.requirement("PRM-3")
async def test_t67_a_progress_callback_may_ask_the_person(bystander_host, era):
    user = CallsBeforeAnswering(0)
    async with bystander_host(
        stdio_server("counts_slowly.py", protocol=era), interaction=user, **ALLOW_BYSTANDER
    ) as a:
        said: list[str] = []

        async def on_progress(progress: Any) -> None:
            said.append(await a.call("echo", message="asked amid progress"))

        async with at_once():
            assert await a.call("count", to=3, on_progress=on_progress) == "counted to 3"
        assert said
    assert user.asked == 1 + len(said)


@pytest.mark.parametrize(
    "fault",
    [
        "raises",
        "cancels itself",
        "answers nonsense",
        "returns nothing",
    ],
)
@pytest.mark.requirement("PRM-3")
async def test_t67_an_interaction_that_raises_counts_as_a_refusal_and_the_next_question_is_asked(
    bystander_host, era, fault
):
    class Broken:
        asked = 0

        async def allow(self, question: Any) -> Any:
            self.asked += 1
            if self.asked > 1:
                return PermissionAnswer(True)
            match fault:
                case "raises":
                    raise ValueError("no screen")
                case "answers nonsense":
                    return "yes"
                case "cancels itself":
                    raise asyncio.CancelledError
                case _:
                    return None

    async with (
        bystander_host(
            stdio_server("holds_replies.py", protocol=era), interaction=Broken(), **ALLOW_BYSTANDER
        ) as a,
        at_once(),
    ):
        if fault == "cancels itself":
            with suppress(asyncio.CancelledError):
                assert (await a.outcome("echo", message="x")).is_error
        else:
            assert (await a.outcome("echo", message="x")).is_error
        assert await a.call("echo", message="next") == "next"
