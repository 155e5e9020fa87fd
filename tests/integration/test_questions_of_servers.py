"""Questions of servers, in both eras: the call they belong to, the queue, pages, sampling, roots."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Caller, FormAnswer, FormElicitation, Host, PermissionAnswer, UrlElicitation
from dragoman.errors import InputUnavailable, UrlNotOpened
from dragoman.hooks.declared import hook
from dragoman.interaction import (
    PermissionQuestion,
    SamplingAnswer,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
)
from dragoman.testing import FakeClock, ScriptedUser
from tests.integration.waiting import until
from tests.servers import stdio_server
from tests.servers.web import streamable

LEGACY, MODERN = "2025-11-25", "2026-07-28"
both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN])
ASK = "mcp__s__ask"
FORM = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
PAGE = {"mode": "url", "elicitationId": "e1", "url": "https://pay.example/1", "message": "Pay"}


def host_of(era: str, interaction: Any = None, /, **more: Any) -> Host:
    entry = stdio_server("asks_during_calls.py", protocol=era, **more.pop("entry", {}))
    more.setdefault("permission_mode", "bypassPermissions")
    return Host({"s": entry}, interaction=interaction, **more)


def question(era: str, method: str, params: Any = None) -> dict[str, Any]:
    return {"method": method, "params": params or {}, **({"in_round": True} if era == MODERN else {})}


async def asked(host: Host, era: str, method: str, params: Any = None, **more: Any) -> Any:
    """What the server was answered: a result, or an error."""
    outcome = await host.call(ASK, question(era, method, params), **more)
    if outcome.error is not None:
        raise outcome.error
    reply = json.loads(outcome.text)
    return reply["result"] if "result" in reply else reply["error"]


async def refusal(host: Host, era: str, method: str, params: Any = None) -> str:
    """Why it was refused, in the words of the era."""
    if era == LEGACY:
        return (await asked(host, era, method, params))["message"]
    with pytest.raises(InputUnavailable) as caught:
        await asked(host, era, method, params)
    return str(caught.value)


# --- the call that a question belongs to ---


@pytest.mark.requirement("ASK-1", "ASK-3")
@both_eras
async def test_a_question_names_its_server_and_its_call(era: str):
    user = ScriptedUser(forms=[{"name": "Ada"}], urls=["accept"])
    async with host_of(era, user) as host:
        await host.ready(timeout=20)
        options: Any = {"call_id": "c7", "caller": Caller("ann")}
        assert await asked(host, era, "elicitation/create", FORM, **options) == {
            "action": "accept",
            "content": {"name": "Ada"},
        }
        assert await asked(host, era, "elicitation/create", PAGE, **options) == {"action": "accept"}
    for shown in (*user.forms, *user.urls):
        (call,) = shown.calls
        assert (shown.server, call.method, call.name) == ("s", "tools/call", ASK)
        assert (call.call_id, call.caller.id) == ("c7", "ann")
    assert (user.urls[0].host, user.urls[0].elicitation_id) == ("pay.example", "e1")


@pytest.mark.requirement("ASK-1")
@both_eras
async def test_an_answer_of_a_program_that_does_not_match_the_form_is_not_sent(era: str):
    user = ScriptedUser(forms=[{"name": 7}, {}, {"name": "x", "age": 1}])
    async with host_of(era, user) as host:
        await host.ready(timeout=20)
        problems = ["name: must be a text", "name: is required", "age: the form has no such field"]
        for problem in problems:
            said = await refusal(host, era, "elicitation/create", FORM)
            assert f"the answer to the form cannot be sent: {problem}" in said


# --- one queue ---


class Slow:
    """A person whose answers a test gives."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.answers: asyncio.Queue[None] = asyncio.Queue()

    async def _ask(self, what: str) -> None:
        self.shown.append(what)
        await self.answers.get()

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        await self._ask(f"allow {question.tool}")
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        await self._ask(f"form {question.message}")
        return FormAnswer("decline")


@pytest.mark.requirement("ASK-3")
@both_eras
async def test_permission_and_forms_are_asked_one_at_a_time(era: str):
    person = Slow()
    rules = {"allow": [ASK], "ask": ["mcp__s__echo"]}
    async with host_of(era, person, permission_mode="default", rules=rules) as host:
        await host.ready(timeout=20)
        first = asyncio.create_task(asked(host, era, "elicitation/create", FORM))
        await until(lambda: person.shown)
        second = asyncio.create_task(host.call("mcp__s__echo", {"message": "hi"}))
        await host.ready(timeout=20)
        await asyncio.sleep(0.05)
        assert person.shown == ["form Who?"]
        person.answers.put_nowait(None)
        await until(lambda: len(person.shown) == 2)
        assert await first == {"action": "decline"}
        person.answers.put_nowait(None)
        assert (await second).text == "hi"
    assert person.shown == ["form Who?", "allow mcp__s__echo"]


@pytest.mark.requirement("ASK-3")
@both_eras
async def test_closing_the_host_ends_a_question(era: str):
    person = Slow()
    host = host_of(era, person)
    async with host:
        await host.ready(timeout=20)
        task = asyncio.create_task(asked(host, era, "elicitation/create", FORM))
        await until(lambda: person.shown)
        async with asyncio.timeout(10):
            await host.close()
        with pytest.raises(Exception):  # noqa: B017 (HostClosed or ConnectionLost, whichever is first)
            await task


class Calls:
    """Answers a form after it has called a tool, which needs permission, and one that asks in turn."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.host: Host | None = None
        self.shown: list[str] = []

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        self.shown.append(f"allow {question.tool}")
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.shown.append(f"form {question.message}")
        assert self.host is not None
        if question.message == "inner":
            return FormAnswer("accept", {"name": "inner"})
        echoed = await self.host.call("mcp__s__echo", {"message": "found"})
        inner = await asked(self.host, self.era, "elicitation/create", {**FORM, "message": "inner"})
        return FormAnswer("accept", {"name": f"{echoed.text} {inner['content']['name']}"})


@pytest.mark.requirement("ASK-3")
@both_eras
async def test_an_answer_that_needs_calls_with_questions_causes_no_deadlock(era: str):
    person = Calls(era)
    servers = {
        "s": stdio_server("asks_during_calls.py", protocol=era),
        "t": stdio_server("asks_during_calls.py", protocol=era),
    }
    async with Host(
        servers, interaction=person, rules={"ask": ["mcp__s__echo"]}, permission_mode="default"
    ) as h:
        person.host = h
        await h.ready(timeout=20)
        async with asyncio.timeout(20):
            asks = question(era, "elicitation/create", FORM)
            outcome = await h.call("mcp__t__ask", asks)
    assert json.loads(outcome.text)["result"]["content"] == {"name": "found inner"}
    assert person.shown[0] == "allow mcp__t__ask"
    assert sorted(person.shown[1:]) == sorted(
        ["form Who?", "allow mcp__s__echo", f"allow {ASK}", "form inner"]
    )


# --- pages ---


class AtThePage:
    """Agrees to open pages, and is never done with one by themselves."""

    def __init__(self, says: bool | None = None) -> None:
        self.says = says
        self.opened: list[UrlElicitation] = []
        self.waiting = 0
        self.gone = 0

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_url(self, question: UrlElicitation) -> str:
        self.opened.append(question)
        return "accept"

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        self.waiting += 1
        try:
            if self.says is None:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.gone += 1
            raise
        return bool(self.says)


def shop(person: Any, *words: str) -> Host:
    entry = stdio_server("completes_a_page.py", *words, protocol=LEGACY)
    return Host({"s": entry}, interaction=person, permission_mode="bypassPermissions")


@pytest.mark.requirement("ASK-2")
async def test_a_call_is_made_again_when_the_server_reports_the_page_complete():
    person = AtThePage()
    async with shop(person, "late") as host:
        await host.ready(timeout=20)
        buying = asyncio.create_task(host.call("mcp__s__buy", {}, call_id="c1"))
        await until(lambda: person.waiting)
        await host.call("mcp__s__finish", {})
        assert (await buying).text == "bought"
    assert person.gone == 1, "it is no longer asked"
    assert [(page.elicitation_id, page.calls[0].call_id) for page in person.opened] == [("e1", "c1")]


@pytest.mark.requirement("ASK-2")
async def test_a_page_that_is_complete_before_it_is_waited_for_is_not_waited_for():
    person = AtThePage()
    async with shop(person) as host:
        await host.ready(timeout=20)
        async with asyncio.timeout(20):
            assert (await host.call("mcp__s__buy", {})).text == "bought"
    assert person.waiting == 0


@pytest.mark.requirement("ASK-2")
async def test_the_person_can_confirm_completion_and_is_asked_three_times_at_most():
    person = AtThePage(says=True)
    async with shop(person, "late") as host:
        await host.ready(timeout=20)
        outcome = await host.call("mcp__s__buy", {})
    assert outcome.is_error
    assert "pay first" in outcome.text
    assert (len(person.opened), person.waiting) == (3, 3)


async def test_a_person_who_stops_waiting_cancels_the_question():
    async with shop(AtThePage(says=False), "late") as host:
        await host.ready(timeout=20)
        outcome = await host.call("mcp__s__buy", {})
    assert isinstance(outcome.error, UrlNotOpened)
    assert outcome.error.action == "cancel"


@pytest.mark.requirement("ASK-2")
@both_eras
async def test_only_the_modern_era_waits_for_the_page_before_it_answers(era: str):
    person = AtThePage(says=True)
    async with host_of(era, person) as host:
        await host.ready(timeout=20)
        assert await asked(host, era, "elicitation/create", PAGE) == {"action": "accept"}
    assert person.waiting == (1 if era == MODERN else 0)


# --- hooks ---


@pytest.mark.requirement("ASK-3")
@both_eras
async def test_hooks_get_all_fields_and_answer_without_a_person(era: str):
    given: list[dict[str, Any]] = []

    def answer(facts: dict[str, Any]) -> dict[str, Any]:
        given.append(facts)
        content = {"name": "hook"} if facts["mode"] == "form" else {}
        said = {"hookEventName": "Elicitation", "action": "accept", "content": content}
        return {"hookSpecificOutput": said}

    hooks = [hook(answer, "Elicitation"), hook(given.append, "ElicitationResult")]
    async with host_of(era, hooks=hooks) as host:
        await host.ready(timeout=20)
        form = await asked(host, era, "elicitation/create", FORM, call_id="c1")
        page = await asked(host, era, "elicitation/create", PAGE, call_id="c2")
    assert form == {"action": "accept", "content": {"name": "hook"}}
    assert page == {"action": "accept"}
    fields = ("hook_event_name", "mode", "url", "elicitation_id", "tool_use_id")
    assert [tuple(facts[field] for field in fields) for facts in given] == [
        ("Elicitation", "form", "", "", "c1"),
        ("ElicitationResult", "form", "", "", "c1"),
        ("Elicitation", "url", PAGE["url"], "e1", "c2"),
        ("ElicitationResult", "url", PAGE["url"], "e1", "c2"),
    ]


# --- sampling ---

HELLO = {"messages": [{"role": "user", "content": {"type": "text", "text": "Hi"}}], "maxTokens": 50}


class Model:
    supports_tools = True

    def __init__(self, text: str = "Hello", act: Any = None) -> None:
        self.text = text
        self.act = act
        self.asked: list[SamplingRequest] = []

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        self.asked.append(request)
        if self.act is not None:
            await self.act()
        return SamplingAnswer(content=({"type": "text", "text": self.text},), model="m-1")


def sampling_host(era: str, mode: str, model: Model | None, user: Any = None, **more: Any) -> Host:
    return host_of(era, user, sampler=model, entry={"sampling": mode}, **more)


@pytest.mark.requirement("ASK-4")
@both_eras
async def test_a_model_answers_a_server_whose_entry_allows_it(era: str):
    model = Model()
    preferences = {"hints": [{"name": "small"}, {"name": "m-"}], "costPriority": 0.2}
    async with sampling_host(era, "allow", model) as host:
        await host.ready(timeout=20)
        wide = {**HELLO, "maxTokens": 10**9, "includeContext": "allServers", "modelPreferences": preferences}
        result = await asked(host, era, "sampling/createMessage", wide)
    text = {"type": "text", "text": "Hello"}
    assert result == {"role": "assistant", "content": text, "model": "m-1", "stopReason": "endTurn"}
    (request,) = model.asked
    assert request.messages == (SamplingMessage("user", ({"type": "text", "text": "Hi"},)),)
    assert (request.max_tokens, request.model_hints, request.cost_priority) == (4096, ("small", "m-"), 0.2)
    assert [call.name for call in request.calls] == [ASK]


@pytest.mark.requirement("ASK-4")
@both_eras
@pytest.mark.parametrize(
    ("mode", "model", "user"),
    [
        ("off", Model(), None),
        ("allow", None, None),
        ("ask", Model(), None),
        ("ask", Model(), ScriptedUser(True)),
    ],
    ids=["off", "no model", "no person", "a person who cannot review"],
)
async def test_sampling_that_is_not_offered_is_refused(era: str, mode: str, model: Any, user: Any):
    async with sampling_host(era, mode, model, user) as host:
        await host.ready(timeout=20)
        said = await refusal(host, era, "sampling/createMessage", HELLO)
    assert "this client does not offer sampling/createMessage" in said
    assert model is None or model.asked == []


@pytest.mark.requirement("ASK-4")
@both_eras
async def test_a_person_reviews_changes_and_refuses_request_and_answer(era: str):
    model = Model()
    other = SamplingMessage("user", ({"type": "text", "text": "Bye"},))
    request = SamplingRequest(server="s", messages=(other,), max_tokens=5)
    answer = SamplingAnswer(content=({"type": "text", "text": "Changed"},), model="m-1")
    user = ScriptedUser(reviews=[SamplingReview(request), SamplingReview(request, answer), False])
    async with sampling_host(era, "ask", model, user) as host:
        await host.ready(timeout=20)
        result = await asked(host, era, "sampling/createMessage", HELLO)
        assert result["content"] == {"type": "text", "text": "Changed"}
        refused = await refusal(host, era, "sampling/createMessage", HELLO)
        assert "the user rejected the sampling request" in refused
    assert [each.messages for each in model.asked] == [(other,)]
    assert [review.answer is None for review in user.reviews] == [True, False, True]


@pytest.mark.requirement("ASK-4")
@both_eras
async def test_requests_for_a_model_are_limited_in_rate(era: str):
    model, clock = Model(), FakeClock()
    settings = {"DRAGOMAN_SAMPLING_PER_MINUTE": 2}
    async with sampling_host(era, "allow", model, clock=clock, settings=settings) as host:
        await host.ready(timeout=20)
        for _ in range(2):
            await asked(host, era, "sampling/createMessage", HELLO)
        said = await refusal(host, era, "sampling/createMessage", HELLO)
        assert "more than 2 sampling requests in a minute" in said
        clock.advance(61)
        await asked(host, era, "sampling/createMessage", HELLO)
    assert len(model.asked) == 3


@pytest.mark.requirement("ASK-4")
@both_eras
async def test_a_model_that_calls_tools_that_ask_the_model_ends(era: str):
    said: list[Any] = []

    async def act() -> None:
        outcome = await host.call(ASK, question(era, "sampling/createMessage", HELLO))
        said.append(outcome.text)

    model = Model(act=act)
    host = sampling_host(era, "allow", model)
    async with host:
        await host.ready(timeout=20)
        await asked(host, era, "sampling/createMessage", HELLO)
    assert len(model.asked) == 2
    assert "sampling within sampling is nested too deeply" in said[0]


async def test_the_error_of_a_model_is_not_sent_to_the_server():
    async def fail() -> None:
        raise RuntimeError("key sk-123 is wrong")

    async with sampling_host(LEGACY, "allow", Model(act=fail)) as host:
        await host.ready(timeout=20)
        said = await asked(host, LEGACY, "sampling/createMessage", HELLO)
    assert said == {"code": -32603, "message": "the model could not be asked"}


# --- roots ---


@pytest.mark.requirement("ASK-5")
@both_eras
async def test_a_local_server_gets_the_working_directory_and_other_folders_as_roots(era: str, tmp_path: Path):
    other = tmp_path / "a folder"
    other.mkdir()
    async with host_of(era, roots=[other]) as host:
        await host.ready(timeout=20)
        here = Path.cwd().resolve()
        expected = [{"uri": here.as_uri(), "name": here.name}, {"uri": other.as_uri(), "name": "a folder"}]
        assert await asked(host, era, "roots/list") == {"roots": expected}
        assert host.roots == (here, other)
        host.set_roots([])
        assert await asked(host, era, "roots/list") == {"roots": expected[:1]}


@pytest.mark.requirement("ASK-5")
@both_eras
@pytest.mark.parametrize(
    ("entry", "named"), [({"roots": False}, True), ({}, False)], ids=["its entry says so", "none were named"]
)
async def test_a_local_server_gets_no_roots_in_these_cases(
    era: str, entry: dict[str, Any], named: bool, tmp_path: Path
):
    """A filesystem server takes roots in place of the folders that its own entry names."""
    async with host_of(era, entry=entry, roots=[tmp_path] if named else ()) as host:
        await host.ready(timeout=20)
        assert "this client does not offer roots/list" in await refusal(host, era, "roots/list")


@pytest.mark.requirement("ASK-5")
@both_eras
@pytest.mark.parametrize("roots", [True, None])
async def test_a_remote_server_gets_roots_and_their_changes_only_if_its_entry_allows_it(
    era: str, roots: bool | None, tmp_path: Path
):
    async with streamable(revisions=(era,)) as server:
        entry = {"type": "http", "url": server.url, "protocol": era}
        if roots is not None:
            entry["roots"] = roots
        async with Host({"s": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            host.set_roots([tmp_path])
            host.set_roots([tmp_path])  # the same again
            assert (await host.call("mcp__s__echo", {"text": "on"})).text == "on"
        announced = len(server.asked("notifications/roots/list_changed"))
        if era == LEGACY:
            declared = server.asked("initialize")[0].params["capabilities"]
            assert (declared.get("roots"), announced) == (({"listChanged": True}, 1) if roots else (None, 0))
        else:
            meta = server.asked("tools/call")[0].params["_meta"]
            declared = meta["io.modelcontextprotocol/clientCapabilities"]
            assert (declared.get("roots"), announced) == ({} if roots else None, 0)
