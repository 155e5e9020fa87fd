"""The story of one call: the order of its steps is the security model."""

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Raw

from dragoman.calls.outcome import CallOutcome
from dragoman.calls.pipeline import Pipeline
from dragoman.calls.tool_call import ToolCall
from dragoman.catalog.catalog import Catalog, ServerTools
from dragoman.catalog.listing import ToolList
from dragoman.catalog.tools import BuiltinTool, Tool
from dragoman.connections.server_requests import UrlCompletions
from dragoman.content.prepare import Preparer
from dragoman.content.redact import Redactor
from dragoman.errors import (
    CallError,
    CallTimeout,
    ConnectionLost,
    HostClosed,
    HttpError,
    InvalidArguments,
    MalformedReply,
    MessageTooLarge,
    NotConnected,
    PermissionRefused,
    RemoteError,
    UnknownTool,
)
from dragoman.events import CallFinished, CallProgressed, CallStarted, EventBus
from dragoman.hooks.merging import After, Before
from dragoman.hooks.verdicts import HookDecision
from dragoman.interaction import Caller
from dragoman.names import ServerName
from dragoman.permissions.checker import Decision
from dragoman.testing import FakeClock
from dragoman.wire.messages import ToolDefinition
from dragoman.wire.peer import Progress
from tests.unit.fakes import Nobody, definition, elicitor_of

NAME = "mcp__box__open"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False}
FINE = b'{"content":[{"type":"text","text":"fine"}]}'


class World:
    """Everything a call passes, each part noting that it was reached, in order."""

    def __init__(self) -> None:
        self.story: list[Any] = []
        self.clock = FakeClock()
        self.bus = EventBus()
        self.reply: bytes | Exception = FINE
        self.progress: list[Progress] = []
        self.decision = Decision(True, "fine with me")
        self.version = 0
        self.changed_arguments: Mapping[str, Any] | None = None
        self.wanted = {"PreToolUse", "PostToolUse", "PostToolUseFailure"}
        self.after = After()
        self.ids: list[str] = []
        """What hooks and permission are told each call is called."""
        self.word: HookDecision | None = None
        self.heard: HookDecision | None = None
        self.context: tuple[str, ...] = ()
        self.no_session: Exception | None = None
        self.later_replies: list[bytes | Exception] = []
        self.is_away = False
        self.retry_safe = False
        self.catalog = Catalog()
        self.listed_again = [definition("open", SCHEMA)]
        self.replace_entry()
        self.pipeline = self.pipeline_with(None)

    def pipeline_with(self, person: Any) -> Pipeline:
        elicitor = None if person is None else elicitor_of(person)
        return Pipeline(self, self, self, Preparer(), elicitor=elicitor)  # type: ignore[arg-type]

    async def call(
        self, arguments: Mapping[str, Any] | None = None, name: str = NAME, **more: Any
    ) -> CallOutcome:
        return await self.pipeline.call(ToolCall(name, {"n": 1} if arguments is None else arguments, **more))

    # hooks

    @property
    def of_event(self) -> set[str]:
        return self.wanted

    def wants(self, event: str, subject: Any, arguments: Any = None) -> bool:
        return event in self.wanted

    async def before_call(self, tool: Tool, arguments: Mapping[str, Any], *, call_id: str) -> Before:
        self.ids.append(call_id)
        self.story.append(("before", tool.name, arguments))
        changed = arguments if self.changed_arguments is None else self.changed_arguments
        return Before(changed, self.word, self.context)

    async def after_call(
        self,
        tool: Tool,
        arguments: Any,
        text: str,
        *,
        is_error: bool,
        error_code: str | None = None,
        call_id: str,
    ) -> After:
        self.ids.append(call_id)
        self.story.append(("after", tool.name, text))
        return self.after

    # permissions

    def denied(self, tools: Any) -> frozenset[str]:
        return frozenset()

    def decide_by_rules_alone(self, tool: Tool, word: HookDecision | None) -> Decision | None:
        return None

    async def decide(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        word: HookDecision | None = None,
        *,
        is_own_request: bool = False,
        call_id: str,
        caller: Caller,
    ) -> Decision:
        self.ids.append(call_id)
        self.heard = word
        self.story.append(("decide", tool.name, arguments))
        return self.decision

    # the registry, and its only server

    def find(self, name: str) -> "World | None":
        return self if name == "box" else None

    def __contains__(self, name: str) -> bool:
        return name == "box"

    def server_in(self, name: str) -> "World | None":
        return None

    name = ServerName("box")
    timeout_seconds = 77.0
    requests: Any = Nobody()
    redactor: Redactor | None = None

    def session(self) -> "World | None":
        return None if self.is_away or self.no_session is not None else self

    async def wait_for_session(self, seconds: float) -> "World":
        if self.no_session is not None:
            raise self.no_session
        self.story.append(("awaited", seconds))
        return self

    def is_retry_safe(self, tool: Tool) -> bool:
        return self.retry_safe

    async def read_tools_again(self, session: object, seconds: float) -> None:
        assert session is self
        self.story.append(("listed",))
        self.offer(self.listed_again)

    def offer(self, definitions: list[ToolDefinition]) -> None:
        self.listed_again = definitions
        self.tools.set(ToolList(tuple(definitions)))
        self.catalog.changed()

    def replace_entry(self) -> None:
        """Another entry takes the place of this one, and offers the same."""
        self.tools = ServerTools(ServerName("box"))
        self.catalog.add(self.tools)
        self.offer(self.listed_again)

    # the session

    server = "box"
    mirrors_arguments = True
    driver = SimpleNamespace(era="modern", servers_may_ask=False)

    async def request(
        self,
        method: str,
        params: Any,
        *,
        timeout_seconds: float,
        on_progress: Any,
        headers: Any,
        reset_timeout_on_progress: bool,
        before_send: Any,
        call: Any,
    ) -> Raw:
        before_send()
        self.story.append((method, params, timeout_seconds))
        self.headers = headers
        self.clock.advance(2.5)
        for progress in self.progress:
            on_progress(progress)
        reply = self.reply
        if self.later_replies:
            self.reply = self.later_replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Raw(reply)

    @property
    def reached_the_server(self) -> bool:
        return any(step[0] == "tools/call" for step in self.story)

    async def events(self, listener: Any) -> list[Any]:
        self.bus.close()
        return [event async for event in listener]


@pytest.fixture
def world() -> World:
    return World()


async def test_the_steps_run_in_order(world: World):
    outcome = await world.call()

    assert world.story == [
        ("before", NAME, {"n": 1}),
        ("decide", NAME, {"n": 1}),
        ("tools/call", {"name": "open", "arguments": {"n": 1}}, 77.0),
        ("after", NAME, "fine"),
    ]
    assert (outcome.server, outcome.tool, outcome.text, outcome.is_error) == ("box", NAME, "fine", False)
    assert outcome.duration_seconds == 2.5


async def test_an_unknown_tool_is_an_outcome_without_hooks_or_permission(world: World):
    outcome = await world.call(name="mcp__box__opne")

    assert isinstance(outcome.error, UnknownTool)
    assert outcome.is_error
    assert NAME in outcome.text
    assert world.story == []


async def test_a_wire_name_is_not_accepted_as_a_tool_name(world: World):
    assert isinstance((await world.call(name="open")).error, UnknownTool)
    assert world.story == []


async def test_invalid_arguments_are_an_outcome_without_hooks_or_permission(world: World):
    outcome = await world.call({"n": "one"})

    assert isinstance(outcome.error, InvalidArguments)
    assert outcome.server == "box"
    assert "n: " in outcome.text
    assert world.story == []


async def test_a_refused_call_never_reaches_the_server(world: World):
    world.decision = Decision(False, "denied by the person: not today")
    outcome = await world.call()

    assert isinstance(outcome.error, PermissionRefused)
    assert outcome.is_error
    assert "not today" in outcome.text
    assert not world.reached_the_server


async def test_permission_and_server_get_the_arguments_as_changed_by_hooks(world: World):
    world.changed_arguments = {"n": 2}
    await world.call()

    assert world.story[1] == ("decide", NAME, {"n": 2})
    assert world.story[2][1] == {"name": "open", "arguments": {"n": 2}}


async def test_arguments_changed_by_hooks_are_validated_again(world: World):
    world.changed_arguments = {"n": 1, "smuggled": True}
    outcome = await world.call()

    assert isinstance(outcome.error, InvalidArguments)
    assert [step[0] for step in world.story] == ["before"]


async def test_post_call_hooks_may_change_the_outcome(world: World):
    world.after = After(("mind the gap",), "other words")
    world.context = ("asked for by a hook",)

    assert (await world.call()).text == "other words\nmind the gap\nasked for by a hook"


async def test_a_decision_of_a_pre_call_hook_reaches_the_permission_check(world: World):
    world.word = HookDecision("ask", "not sure", "careful")
    await world.call()

    assert world.heard == world.word


async def test_without_matching_hooks_no_hook_is_called(world: World):
    world.wanted = set()
    await world.call()

    assert [step[0] for step in world.story] == ["decide", "tools/call"]


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (b'{"content":[{"type":"text","text":"disk full"}],"isError":true}', type(None)),
        (RemoteError("box", -32602, "disk full"), RemoteError),
        (InvalidArguments("box", "open", ("disk full",)), InvalidArguments),
    ],
    ids=str,
)
async def test_an_error_of_the_tool_or_its_server_is_an_outcome(
    world: World, reply: bytes | Exception, kind: type
):
    world.reply = reply
    outcome = await world.call()

    assert outcome.is_error
    assert type(outcome.error) is kind
    assert "disk full" in outcome.text
    assert world.story[-1][0] == "after"


@pytest.mark.parametrize(
    "error",
    [
        ConnectionLost("box", "it exited", may_have_run=True),
        CallTimeout("box", "tools/call", 1),
        MalformedReply("box", "x"),
        MessageTooLarge("box", 1),
    ],
    ids=lambda error: error.code,
)
async def test_an_internal_failure_is_raised(world: World, error: CallError):
    world.reply = error
    with pytest.raises(type(error)) as caught:
        await world.call()

    assert caught.value is error


@pytest.mark.parametrize("error", [NotConnected("box", "failed", "it exited"), HostClosed()], ids=str)
async def test_a_disconnected_server_is_raised_after_the_permission_check(world: World, error: Exception):
    world.no_session = error
    with pytest.raises(type(error)):
        await world.call()

    assert [step[0] for step in world.story] == ["before", "decide"] + ["after"] * isinstance(
        error, CallError
    )


@pytest.mark.parametrize(
    "reply",
    [
        b"null",
        b"[]",
        b"7",
        b'{"content":7}',
        b'{"resultType":7}',
        b'{"content":[{"type":"text","text":"\xff"}]}',
        b'{"resultType":"task","task":{}}',
        b'{"resultType":"input_required","inputRequests":{}}',
    ],
)
async def test_a_result_that_cannot_be_decoded_is_raised_as_malformed(world: World, reply: bytes):
    world.reply = reply
    with pytest.raises(MalformedReply):
        await world.call()


async def test_an_empty_result_is_a_result(world: World):
    world.reply = b"{}"
    outcome = await world.call()

    assert (outcome.content, outcome.is_error) == ((), False)


@pytest.mark.parametrize(("asked", "given"), [(None, 77.0), (3.0, 3.0), (0.0, 0.0)])
async def test_the_callers_time_limit_replaces_the_servers(world: World, asked: float | None, given: float):
    await world.call(timeout_seconds=asked)

    assert world.story[2][2] == given


# --- when it comes to nothing ---

UNSENT = ConnectionLost("box", "gone", may_have_run=False)
IN_DOUBT = ConnectionLost("box", "gone", may_have_run=True)


def steps(world: World) -> list[str]:
    return [step[0] for step in world.story]


@pytest.mark.requirement("LIF-5")
async def test_a_reconnecting_server_is_waited_for(world: World):
    world.is_away = True

    assert (await world.call()).text == "fine"
    assert steps(world) == ["before", "decide", "awaited", "tools/call", "after"]
    assert world.story[2] == ("awaited", 77.0)


@pytest.mark.requirement("LIF-7")
async def test_a_call_that_never_reached_its_server_is_retried_within_its_time_limit(world: World):
    world.reply, world.later_replies = UNSENT, [FINE]

    assert (await world.call(timeout_seconds=10.0)).text == "fine"
    assert [step for step in world.story if step[0] in ("awaited", "tools/call")] == [
        ("tools/call", {"name": "open", "arguments": {"n": 1}}, 10.0),
        ("awaited", 7.5),
        ("tools/call", {"name": "open", "arguments": {"n": 1}}, 7.5),
    ]


async def test_retries_of_a_call_that_never_reaches_its_server_end(world: World):
    world.reply = UNSENT
    with pytest.raises(ConnectionLost) as caught:
        await world.call()

    assert not caught.value.may_have_run
    assert steps(world).count("tools/call") == 3


async def test_a_call_that_may_have_run_is_not_retried(world: World):
    world.reply, world.later_replies = IN_DOUBT, [FINE]
    with pytest.raises(ConnectionLost) as caught:
        await world.call()

    assert caught.value.may_have_run
    assert steps(world).count("tools/call") == 1


async def test_a_retry_safe_call_is_retried_once(world: World):
    world.retry_safe = True
    world.reply = IN_DOUBT
    with pytest.raises(ConnectionLost):
        await world.call()

    assert steps(world).count("tools/call") == 2


async def test_questions_and_hooks_run_once_for_a_call_and_its_retries(world: World):
    world.reply, world.later_replies = UNSENT, [UNSENT, FINE]
    await world.call()

    taken = steps(world)
    assert [taken.count(step) for step in ("before", "decide", "tools/call", "after")] == [1, 1, 3, 1]


async def test_after_a_mismatch_of_headers_the_tools_are_listed_again(world: World):
    changed = {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}}
    world.listed_again = [definition("open", changed)]
    world.reply, world.later_replies = RemoteError("box", -32020, "header mismatch", status=400), [FINE]

    assert (await world.call()).text == "fine"
    again = ["before", "decide"]  # because the new definition has not been judged
    assert steps(world) == [
        "before",
        "decide",
        "tools/call",
        "awaited",
        "listed",
        *again,
        "tools/call",
        "after",
    ]
    assert world.headers == {"Mcp-Param-N": "1"}


async def test_a_second_mismatch_of_headers_is_the_outcome(world: World):
    world.reply = RemoteError("box", -32020, "header mismatch", status=400)
    outcome = await world.call()

    assert isinstance(outcome.error, RemoteError)
    assert steps(world).count("tools/call") == 2


async def test_a_tool_that_is_missing_from_the_new_list_is_an_outcome(world: World):
    world.listed_again = []
    world.reply = RemoteError("box", -32020, "header mismatch", status=400)
    outcome = await world.call()

    assert isinstance(outcome.error, UnknownTool)
    assert steps(world).count("tools/call") == 1


# --- what is told of it ---


@pytest.mark.requirement("CAL-3")
async def test_events_report_start_progress_and_end(world: World):
    listener = world.bus.listen()
    world.progress = [Progress(1, 2, "half")]
    await world.call(call_id="mine")

    of_call = {"server": "box", "tool": NAME, "call_id": "mine"}
    assert await world.events(listener) == [
        CallStarted(**of_call),
        CallProgressed(**of_call, progress=1, total=2, message="half"),
        CallFinished(**of_call, duration_seconds=2.5, is_error=False),
    ]
    assert world.ids == ["mine"] * 3


async def test_a_call_without_a_given_id_gets_a_new_id(world: World):
    await world.call()
    await world.call()

    one, other = world.ids[:3], world.ids[3:]
    assert len(set(one)) == len(set(other)) == 1
    assert one[0]
    assert one[0] != other[0]


async def test_hooks_get_the_id_of_a_failed_call(world: World):
    world.reply = CallTimeout("box", "tools/call", 1)
    with pytest.raises(CallTimeout):
        await world.call(call_id="mine")

    assert steps(world)[-1] == "after"
    assert world.ids == ["mine"] * 3


@pytest.mark.requirement("CAL-3")
async def test_the_progress_callback_is_called_without_event_listeners(world: World):
    seen: list[Progress] = []
    world.progress = [Progress(1), Progress(2)]
    await world.call(on_progress=seen.append)

    assert seen == [Progress(1), Progress(2)]


async def test_a_failing_progress_callback_does_not_affect_the_call(world: World):
    def broken(progress: Progress) -> None:
        raise RuntimeError("boom")

    world.progress = [Progress(1)]

    assert (await world.call(on_progress=broken)).text == "fine"


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (b'{"isError":true}', None),
        (RemoteError("box", 1, ""), "remote-error"),
        (CallTimeout("box", "tools/call", 1), "timeout"),
    ],
    ids=str,
)
async def test_the_event_of_a_failed_call_contains_its_code(
    world: World, reply: bytes | Exception, code: str | None
):
    listener = world.bus.listen()
    world.reply = reply
    try:
        await world.call()
    except CallError:
        pass

    end = (await world.events(listener))[-1]
    assert isinstance(end, CallFinished)
    assert (end.is_error, end.error_code) == (True, code)


async def test_a_call_that_was_not_made_causes_no_event(world: World):
    listener = world.bus.listen()
    world.decision = Decision(False, "no")
    await world.call()

    assert await world.events(listener) == []


# Built-in tools.


def builtin(world: World, does: Any) -> dict[str, BuiltinTool]:
    async def run(arguments: Mapping[str, Any]) -> str:
        world.story.append(("run", arguments))
        return await does()

    return {"look": BuiltinTool("look", run, description="", input_schema=SCHEMA)}


async def fine() -> str:
    return "fine"


async def for_ever() -> str:
    return await asyncio.get_running_loop().create_future()


async def test_arguments_that_are_left_out_are_filled_in_before_hooks_and_permission(world: World):
    async def complete(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**arguments, "n": 7}

    world.wanted = {"PreToolUse"}
    tool = builtin(world, fine)["look"]
    tool.complete = complete
    await world.call({}, "look", builtin_tools={"look": tool})

    filled_in = {"n": 7}
    assert world.story == [("before", "look", filled_in), ("decide", "look", filled_in), ("run", filled_in)]


async def test_arguments_that_cannot_be_filled_in_in_time_are_invalid(world: World):
    async def complete(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return await asyncio.get_running_loop().create_future()

    tool = builtin(world, fine)["look"]
    tool.complete = complete
    outcome = await world.call({"n": 1}, "look", builtin_tools={"look": tool}, timeout_seconds=0)

    assert isinstance(outcome.error, InvalidArguments)
    assert outcome.error.problems == ("those that were left out could not be found in time",)
    assert world.story == []


async def late_by_itself() -> str:
    raise TimeoutError("the tool's own")


async def without_its_server() -> str:
    raise NotConnected("lib", "failed", "it is gone")


async def test_a_built_in_tool_runs_through_the_same_steps(world: World):
    outcome = await world.call(name="look", builtin_tools=builtin(world, fine))

    assert [step[0] for step in world.story] == ["before", "decide", "run", "after"]
    assert (outcome.server, outcome.tool, outcome.text, outcome.is_error) == ("", "look", "fine", False)


async def test_a_built_in_tool_that_is_not_allowed_or_wrongly_called_does_not_run(world: World):
    own = builtin(world, fine)
    assert isinstance(
        (await world.call({"n": "one"}, name="look", builtin_tools=own)).error, InvalidArguments
    )
    world.decision = Decision(False, "no")

    assert isinstance((await world.call(name="look", builtin_tools=own)).error, PermissionRefused)
    assert "run" not in [step[0] for step in world.story]


async def test_only_the_callers_built_in_tools_can_be_called(world: World):
    assert isinstance((await world.call(name="look")).error, UnknownTool)


async def test_a_built_in_tool_without_its_server_is_an_outcome(world: World):
    outcome = await world.call(name="look", builtin_tools=builtin(world, without_its_server))

    assert isinstance(outcome.error, NotConnected)
    assert "it is gone" in outcome.text


async def test_a_built_in_tool_has_the_callers_time_limit(world: World):
    outcome = await world.call(name="look", builtin_tools=builtin(world, for_ever), timeout_seconds=0.01)

    assert outcome.is_error
    assert "look took longer than 0.01 s" in outcome.text
    outcome = await world.call(name="look", builtin_tools=builtin(world, late_by_itself), timeout_seconds=60)
    assert outcome.text == "look failed: TimeoutError: the tool's own"


async def test_the_judged_arguments_are_sent_even_if_the_caller_changes_the_object(world: World):
    arguments: dict[str, Any] = {"n": 1}
    decide = world.decide

    async def slow(*given: Any, **more: Any) -> Decision:
        arguments["n"] = 666
        return await decide(*given, **more)

    world.decide = slow  # type: ignore[method-assign]
    await world.call(arguments)

    sent = next(step for step in world.story if step[0] == "tools/call")
    assert sent[1]["arguments"] == {"n": 1}


@pytest.mark.parametrize("how", ["definition", "entry"])
async def test_a_call_whose_tool_changes_during_the_permission_check_is_judged_again(world: World, how: str):
    decide = world.decide

    async def slow(*given: Any, **more: Any) -> Decision:
        if not [step for step in world.story if step[0] == "decide"]:
            if how == "entry":
                world.replace_entry()
            else:
                world.offer([definition("open", SCHEMA, description="now it burns")])
        return await decide(*given, **more)

    world.decide = slow  # type: ignore[method-assign]
    assert (await world.call()).text == "fine"
    assert [step[0] for step in world.story] == [
        "before",
        "decide",
        "before",
        "decide",
        "tools/call",
        "after",
    ]


async def test_a_deny_rule_added_during_the_permission_check_refuses_the_call(world: World):
    decide = world.decide
    refused = Decision(False, "denied by a rule")

    async def slow(*given: Any, **more: Any) -> Decision:
        decision = await decide(*given, **more)
        world.version, world.decision = 1, refused
        return decision

    world.decide = slow  # type: ignore[method-assign]
    world.denies = lambda tool, arguments: world.decision is refused  # type: ignore[attr-defined]
    outcome = await world.call()

    assert isinstance(outcome.error, PermissionRefused)
    assert [step[0] for step in world.story] == ["before", "decide", "before", "decide"]


# --- what changes while the call waits ---

BUSY = HttpError("box", 429, "busy", may_have_run=False, retry_after_seconds=0.1)
OLD_HEADERS = RemoteError("box", -32020, "header mismatch", status=400)
PAGE_FIRST = RemoteError("box", -32042, "visit", {"elicitations": [{"url": "https://a.example/"}]})
QUESTION = b'{"resultType":"input_required","inputRequests":{"k":{"method":"m"}},"requestState":"s"}'
WAITS: dict[str, tuple[bytes | Exception, str]] = {
    "for a busy server": (BUSY, "retry_safe"),
    "for a reconnect": (UNSENT, "wait_for_session"),
    "for a list": (OLD_HEADERS, "read_tools_again"),
    "for a page": (PAGE_FIRST, "visit"),
    "for an answer to a question": (QUESTION, "answer"),
}


class ChangingWorld(World):
    """A server whose entry or definition becomes another during the wait for one thing."""

    def __init__(self, how: str, during: str) -> None:
        super().__init__()
        self._how = how
        self._during = during

    def _change(self, what: str) -> None:
        if what != self._during:
            return
        self._during = "never again"
        if self._how == "entry":
            self.replace_entry()
        elif self._how == "gone":
            self.offer([])
        else:
            self.offer([definition("open", SCHEMA, description="now it burns")])

    def is_retry_safe(self, tool: Tool) -> bool:
        self._change("retry_safe")  # asked right before the wait
        return super().is_retry_safe(tool)

    async def wait_for_session(self, seconds: float) -> World:
        session = await super().wait_for_session(seconds)
        self._change("wait_for_session")
        return session

    async def read_tools_again(self, session: object, seconds: float) -> None:
        await super().read_tools_again(session, seconds)
        self._change("read_tools_again")

    async def elicit_url(self, question: Any) -> str:
        self._change("visit")
        return "accept"

    completions = UrlCompletions()

    @property
    def requests(self) -> Any:  # type: ignore[override]
        return self

    async def answer(self, method: str, params: Raw, context: Any) -> Mapping[str, Any]:
        self._change("answer")
        return {}


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(("reply", "during"), WAITS.values(), ids=WAITS.keys())
@pytest.mark.parametrize("how", ["definition", "entry"])
async def test_a_call_whose_tool_changes_during_a_wait_is_judged_again_before_the_retry(
    how: str, reply: bytes | Exception, during: str
):
    world = ChangingWorld(how, during)
    world.pipeline = world.pipeline_with(world)
    world.reply, world.later_replies = reply, [FINE]
    outcome = await world.call()

    assert outcome.text == "fine"
    judged = [step for step in steps(world) if step in ("before", "decide", "tools/call", "after")]
    assert judged == ["before", "decide", "tools/call", "before", "decide", "tools/call", "after"]


@pytest.mark.parametrize(("reply", "during"), WAITS.values(), ids=WAITS.keys())
async def test_a_tool_removed_while_a_call_waits_is_not_called_again(reply: bytes | Exception, during: str):
    world = ChangingWorld("gone", during)
    world.pipeline = world.pipeline_with(world)
    world.reply, world.later_replies = reply, [FINE]

    assert isinstance((await world.call()).error, UnknownTool)
    assert steps(world).count("tools/call") == 1


@pytest.mark.parametrize("how", ["definition", "entry"])
async def test_a_call_that_may_have_run_is_not_retried_for_another_tool_or_entry(how: str):
    world = ChangingWorld(how, "wait_for_session")
    world.retry_safe = True
    world.reply, world.later_replies = IN_DOUBT, [FINE]
    with pytest.raises(ConnectionLost) as caught:
        await world.call()

    assert caught.value is IN_DOUBT
    assert steps(world).count("tools/call") == 1


async def test_secrets_of_an_entry_that_was_replaced_during_the_call_are_redacted(world: World):
    world.redactor = Redactor(["hunter2-hunter2"])
    world.reply = b'{"content":[{"type":"text","text":"it is hunter2-hunter2"}]}'
    request = world.request

    async def replaced(*given: Any, **more: Any) -> Raw:
        reply = await request(*given, **more)
        other = SimpleNamespace(redactor=Redactor(["another-secret"]))
        world.find = lambda name: other  # type: ignore[method-assign, assignment, return-value]
        return reply

    world.request = replaced  # type: ignore[method-assign]
    assert (await world.call()).text == "it is [secret]"


async def test_a_call_whose_tool_changes_at_every_check_is_refused(world: World):
    decide = world.decide

    async def restless(*given: Any, **more: Any) -> Decision:
        world.replace_entry()
        return await decide(*given, **more)

    world.decide = restless  # type: ignore[method-assign]
    outcome = await world.call()

    assert isinstance(outcome.error, PermissionRefused)
    assert "tools/call" not in [step[0] for step in world.story]


async def test_a_built_in_tool_that_fails_is_an_outcome(world: World):
    async def broken(arguments: Mapping[str, Any]) -> str:
        raise ValueError("no disk")

    tool = BuiltinTool("own", broken, description="", input_schema={"type": "object"})
    outcome = await world.call({}, "own", builtin_tools={"own": tool})

    assert outcome.is_error
    assert "ValueError: no disk" in outcome.text
