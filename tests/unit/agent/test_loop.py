"""The conversation loop: responses, tool calls, interruption, failures of the provider, compaction."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic_ai.exceptions import (
    ModelAuthenticationError,
    ModelContextWindowExceededError,
    ModelOverloadedError,
)
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart

from dragoman import Host
from dragoman.agent import loop
from dragoman.agent.context import SUMMARIZE, SUMMARY_HEADING
from dragoman.agent.conversion import INTERRUPTED
from dragoman.agent.events import (
    ContextCompacted,
    Message,
    ResponseFinished,
    RetryScheduled,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from dragoman.agent.loop import LIMITS, Conversation, LoopLimits
from dragoman.errors import ConnectionLost, ModelUnavailable
from dragoman.testing import InMemoryServer
from dragoman.testing.model import Calls, Says, ScriptedModel

pytestmark = pytest.mark.requirement("AGT-2")


class Desk:
    """A conversation with a scripted model and a server with four tools."""

    def __init__(self) -> None:
        self.server = InMemoryServer("desk")
        self.order: list[str] = []
        self.entered = asyncio.Event()
        self.running = 0
        self.most_running = 0
        self.server.add_tool("add", lambda arguments, context: str(arguments["a"] + arguments["b"]))
        self.server.add_tool("read", self._read, annotations={"readOnlyHint": True})
        self.server.add_tool("write", self._write)
        self.server.add_tool("hang", self._hang)
        self.events: list[Any] = []

    async def _read(self, arguments: dict[str, Any], context: object) -> str:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0.01)
        self.running -= 1
        self.order.append(f"read {arguments['n']}")
        return f"read {arguments['n']}"

    def _write(self, arguments: dict[str, Any], context: object) -> str:
        self.order.append("write")
        return "written"

    async def _hang(self, arguments: dict[str, Any], context: object) -> str:
        self.entered.set()
        await asyncio.Event().wait()
        return ""

    @asynccontextmanager
    async def talking(
        self, *script: Any, limits: LoopLimits = LIMITS, mode: Any = "bypassPermissions"
    ) -> AsyncIterator[tuple[Conversation, ScriptedModel]]:
        model = ScriptedModel(*script)
        async with Host({"desk": self.server}, permission_mode=mode) as host:
            await host.ready(timeout=10)
            yield Conversation(host.toolbox(), model.model, "Be brief.", limits=limits), model

    def happened(self, kind: type) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def results(request: Any) -> list[tuple[str, str]]:
    assert isinstance(request, ModelRequest)
    return [(part.outcome, str(part.content)) for part in request.parts if isinstance(part, ToolReturnPart)]


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture(autouse=True)
def no_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits between attempts are asked for, and not waited."""
    monkeypatch.setattr("dragoman.agent.retry.FIRST_WAIT_SECONDS", 0.0)


async def test_a_text_is_the_answer_and_arrives_in_pieces(desk: Desk):
    async with desk.talking(Says(("Good ", "morning."))) as (talk, model):
        reply = await talk.run("hello", desk.events.append)
    assert (reply.text, reply.turns, reply.stopped_by) == ("Good morning.", 1, "end")
    assert [event.text for event in desk.happened(TextDelta)] == ["Good ", "morning."]
    (request,) = model.requests
    assert request[-1].instructions == "Be brief."


async def test_tools_are_called_and_their_results_are_sent_to_the_model(desk: Desk):
    async with desk.talking(Calls("mcp__desk__add", {"a": 40, "b": 2}), "42") as (talk, model):
        reply = await talk.run("40 and 2?", desk.events.append)
    assert (reply.text, reply.turns) == ("42", 2)
    assert results(model.requests[1][-1]) == [("success", "42")]
    (started,), (finished,) = desk.happened(ToolCallStarted), desk.happened(ToolCallFinished)
    assert (started.tool, started.arguments) == ("mcp__desk__add", {"a": 40, "b": 2})
    assert (finished.call_id, finished.outcome.text) == (started.call_id, "42")
    assert len(desk.happened(ResponseFinished)) == 2


async def test_calls_that_only_read_run_at_the_same_time_and_others_in_order(desk: Desk):
    calls = [Calls("mcp__desk__read", {"n": n}) for n in (1, 2, 3)]
    more = [Calls("mcp__desk__write"), Calls("mcp__desk__read", {"n": 4})]
    async with desk.talking([*calls, *more], "done") as (talk, model):
        await talk.run("go")
    assert desk.most_running == 3
    assert desk.order[3:] == ["write", "read 4"]
    given = [text for _, text in results(model.requests[1][-1])]
    assert given == ["read 1", "read 2", "read 3", "written", "read 4"], "in the order of the calls"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (Calls("mcp__desk__nothing"), "no tool"),
        (Calls("mcp__desk__add", '{"a": 4'), "they are not JSON"),
        (Calls("mcp__desk__add", "[1]"), "they are not a JSON object"),
    ],
)
async def test_a_mistake_of_the_model_is_a_result_for_it(desk: Desk, call: Calls, text: str):
    async with desk.talking(call, "sorry") as (talk, model):
        assert (await talk.run("go")).text == "sorry"
    ((outcome, given),) = results(model.requests[1][-1])
    assert outcome == "failed"
    assert text in given


async def test_a_refusal_is_marked_as_one(desk: Desk):
    async with desk.talking(Calls("mcp__desk__write"), "so be it", mode="dontAsk") as (talk, model):
        await talk.run("go")
    ((outcome, _),) = results(model.requests[1][-1])
    assert outcome == "denied"
    assert desk.order == []


async def test_after_an_interruption_every_call_has_a_result_and_the_conversation_continues(desk: Desk):
    calls = [Calls("mcp__desk__read", {"n": 1}), Calls("mcp__desk__hang"), Calls("mcp__desk__write")]
    async with desk.talking(calls, "as you wish") as (talk, _):
        running = asyncio.create_task(talk.run("go"))
        await desk.entered.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()
        assert results(talk.history[-1]) == [
            ("success", "read 1"),
            ("interrupted", INTERRUPTED),
            ("interrupted", INTERRUPTED),
        ]
        assert (await talk.run("leave it")).text == "as you wish"
    assert desk.order == ["read 1"], "what came after was not called"


async def test_an_interrupted_text_is_kept(desk: Desk):
    async with desk.talking(Says(("Once upon ", "a time ", "there was"))) as (talk, _):
        running = asyncio.create_task(talk.run("tell", lambda event: running.cancel()))
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled()
        assert "Once upon" in str(talk.history[-1].parts[0])


async def test_a_queued_message_is_sent_with_the_next_results(desk: Desk):
    async with desk.talking(Calls("mcp__desk__write"), "ok") as (talk, model):
        await talk.run(
            "go",
            lambda event: (
                talk.queued.append(Message("hurry")) if isinstance(event, ToolCallStarted) else None
            ),
        )
    (part,) = [part for part in model.requests[1][-1].parts if isinstance(part, UserPromptPart)]
    assert part.content == "hurry"


async def test_a_model_that_repeats_itself_is_warned_and_stopped(desk: Desk):
    again = [Calls("mcp__desk__add", {"a": 1, "b": 1})] * 5
    async with desk.talking(*again, limits=LoopLimits(max_turns=5)) as (talk, _):
        reply = await talk.run("go")
    assert (reply.stopped_by, reply.turns) == ("max-turns", 5)
    given = [text for message in talk.history for _, text in _returns(message)]
    assert given == ["2", "2", *[f"2\n\n{loop.REPEATED}"] * 3]


def _returns(message: Any) -> list[tuple[str, str]]:
    return results(message) if isinstance(message, ModelRequest) else []


async def test_a_request_to_an_overloaded_provider_is_retried_and_shown(desk: Desk):
    overloaded = ModelOverloadedError("scripted", "too busy")
    async with desk.talking(overloaded, overloaded, "here") as (talk, model):
        assert (await talk.run("go", desk.events.append)).text == "here"
    retries = desk.happened(RetryScheduled)
    assert [(each.attempt, each.reason) for each in retries] == [
        (1, "the provider is overloaded"),
        (2, "the provider is overloaded"),
    ]
    assert len(model.requests) == 3


async def test_a_refused_key_is_not_retried_and_the_error_gives_the_next_step(desk: Desk):
    async with desk.talking(ModelAuthenticationError("scripted", "no"), "later") as (talk, model):
        with pytest.raises(ModelUnavailable) as caught:
            await talk.run("go")
        assert str(caught.value) == "the provider refuses the API key"
        assert caught.value.hint == "Check the API key in your environment."
        assert len(model.requests) == 1
        assert (await talk.run("again")).text == "later", "the conversation is not lost"


async def test_a_full_context_is_summarized_before_the_next_request(desk: Desk):
    script = ["long " * 200, "they greeted", "and on"]
    async with desk.talking(*script, limits=LoopLimits(context_tokens=300)) as (talk, model):
        await talk.run("hello")
        assert (await talk.run("what next?", desk.events.append)).text == "and on"
    assert model.requests[1][-1].parts[0].content == SUMMARIZE
    assert model.tools[1] == model.tools[0], "for the provider's cache"
    (compacted,) = desk.happened(ContextCompacted)
    assert compacted.tokens_after < compacted.tokens_before
    first, last = model.requests[2][-1].parts
    assert first.content == f"{SUMMARY_HEADING}\n\nthey greeted"
    assert last.content == "The user's last message:\n\nwhat next?"


async def test_a_provider_that_reports_a_full_context_gets_a_summary_once(desk: Desk):
    too_long = ModelContextWindowExceededError("scripted", "too long")
    async with desk.talking("hi", too_long, "summary", too_long) as (talk, _):
        await talk.run("hello")
        with pytest.raises(ModelUnavailable) as caught:
            await talk.run("more")
        assert str(caught.value) == "the conversation is longer than the model can read"


async def test_a_conversation_too_long_to_summarize_is_summarized_from_shortened_messages(desk: Desk):
    too_long = ModelContextWindowExceededError("scripted", "too long")
    async with desk.talking("hi", too_long, too_long, "summary", "done") as (talk, model):
        await talk.run("hello " * 1000)
        assert (await talk.run("more")).text == "done"
    whole, short = (request[0].parts[0].content for request in model.requests[2:4])
    assert len(whole) == 6000
    assert short == f"{('hello ' * 1000)[:1000]} [the rest is left out]"
    assert model.requests[3][-1].parts[0].content == SUMMARIZE


async def test_a_failure_during_the_summary_is_retried_or_reported_like_any_other(desk: Desk):
    overloaded, refused = ModelOverloadedError("scripted", ""), ModelAuthenticationError("scripted", "")
    events: list[Any] = []
    async with desk.talking("hi", overloaded, "summary", refused) as (talk, _):
        await talk.run("hello")
        await talk.compact(events.append)
        with pytest.raises(ModelUnavailable, match="the provider refuses the API key"):
            await talk.compact()
    assert [type(event) for event in events] == [RetryScheduled, ContextCompacted]


@pytest.mark.requirement("CAT-7")
async def test_a_deferred_tool_is_found_and_called_and_the_order_of_tools_never_changes():
    server, late = InMemoryServer("desk"), InMemoryServer("late")
    for number in range(20):
        server.add_tool(f"tool{number}", lambda arguments, context: "done", description="Does something.")
    server.add_tool("paint", lambda arguments, context: "painted", description="Paints a picture.")
    late.add_tool("also", lambda arguments, context: "done", _meta={"anthropic/alwaysLoad": True})
    model = ScriptedModel(
        [Calls("tool_search", {"query": "paint a picture", "max_results": 1})],
        [Calls("mcp__desk__paint")],
        "Painted.",
        "Still here.",
        "Still here.",
    )
    settings = {"DRAGOMAN_TOOL_SHARE_PERCENT": 0}
    async with Host(
        {"desk": server, "late": late}, permission_mode="bypassPermissions", settings=settings
    ) as host:
        await host.ready(timeout=10)
        await host.disable("late")
        talk = Conversation(host.toolbox(), model.model, "")
        await talk.run("paint")
        await host.enable("late")
        await talk.run("are you there?")
        await host.disable("late")
        await host.enable("late")
        await talk.run("and now?")
    assert results(model.requests[2][-1]) == [("success", "painted")]
    assert "mcp__desk__paint" not in model.tools[0]
    for before, after in zip(model.tools, model.tools[1:]):
        assert after[: len(before)] == before
    assert model.tools[1][-1] == "mcp__desk__paint"
    assert model.tools[3][-1] == model.tools[4][-1] == "mcp__late__also"


@pytest.mark.requirement("CAT-8")
async def test_instructions_of_a_later_server_are_sent_once_and_again_after_a_summary():
    late = InMemoryServer("late", instructions="Ask before you paint.")
    late.add_tool("paint", lambda arguments, context: "painted")
    model = ScriptedModel("Hi.", "Yes.", "And yes.", "They talked.", "On.")
    async with Host({"late": late}, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=10)
        await host.disable("late")
        talk = Conversation(host.toolbox(), model.model, "Be brief.")
        await talk.run("one")
        await host.enable("late")
        await talk.run("two")
        await talk.run("three")
        await talk.compact()
        await talk.run("four")
    given = [[part.content for part in request[-1].parts] for request in model.requests]
    assert given[0] == ["one"]
    assert given[1][-1] == "two"
    assert "## late\n\n> Ask before you paint." in given[1][0]
    assert given[2] == ["three"]
    assert any("> Ask before you paint." in part.content for part in model.requests[4][0].parts)
    assert {request[-1].instructions for request in model.requests} == {"Be brief."}


async def test_a_lost_server_is_a_failure_and_not_an_interruption(desk: Desk):
    async with desk.talking([Calls("mcp__desk__read", {"n": 1}), Calls("mcp__desk__add")], "ok") as (
        talk,
        model,
    ):
        lost = ConnectionLost("desk", "it ended", may_have_run=True)

        async def call(name: str, *_: Any, **__: Any) -> Any:
            raise lost

        talk._toolbox.call = call  # type: ignore[method-assign]
        await talk.run("go", desk.events.append)
    first, second = results(model.requests[1][-1])
    assert (first[0], second[0]) == ("failed", "failed")
    assert "it ended" in first[1]
    assert len(desk.happened(ToolCallFinished)) == 2


async def test_an_empty_summary_does_not_replace_the_conversation(desk: Desk):
    async with desk.talking("hi", Says(("",))) as (talk, _):
        await talk.run("hello")
        before = list(talk.history)
        with pytest.raises(ModelUnavailable, match="no summary"):
            await talk.compact()
        assert talk.history == before
