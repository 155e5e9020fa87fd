"""What follows when a call comes to nothing, end to end: over real HTTP, in both eras, with a ledger."""

import asyncio
import datetime
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from email.utils import format_datetime
from typing import Any, Literal

import pytest

from dragoman import CallOutcome, Host
from dragoman.calls import attempts, recovery
from dragoman.errors import CallTimeout, ConnectionLost, HttpError, RemoteError, UrlNotOpened
from dragoman.interaction import PermissionAnswer, UrlElicitation
from dragoman.wire.peer import Progress
from tests.case_selection import some
from tests.integration.waiting import until
from tests.servers.web import Answer, Ask, Streamable, answers, streamable
from tests.servers.web.given_answers import error, replace_results

LEGACY, MODERN = "2025-11-25", "2026-07-28"
KEY = {"key": "k"}
PAGE = "https://pages.example/sign-in?state=abc&next=/home"

pytestmark = pytest.mark.slow

both_eras = pytest.mark.parametrize("era", [LEGACY, MODERN], ids=["legacy", "modern"])


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where a server asks for a wait is there one worth mentioning."""
    monkeypatch.setattr(recovery, "FIRST_WAIT_SECONDS", 0.01)


@asynccontextmanager
async def connected(
    era: str, *, interaction: Any = None, entry: Any = None, settings: Any = None, **habits: Any
) -> AsyncIterator[tuple[Host, Streamable]]:
    """A host with one server `x`, connected before its habits begin."""
    on = habits.pop("on", {})
    async with streamable(revisions=(era,), **habits) as server:
        fast = {"DRAGOMAN_RECONNECT_WAIT_MS": 1, "DRAGOMAN_RECONNECT_LONGEST_WAIT_MS": 2}
        async with Host(
            {"x": {"type": "http", "url": server.url, "protocol": era, **(entry or {})}},
            permission_mode="bypassPermissions",
            settings={**fast, **(settings or {})},
            interaction=interaction,
        ) as host:
            await host.ready(timeout=20)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
            server.on.update(on)
            yield host, server


async def run(host: Host, **options: Any) -> CallOutcome:
    """One call of the tool whose runs are counted."""
    return await host.call("mcp__x__ledger", KEY, **options)


@contextmanager
def within(least: float, most: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert least <= time.monotonic() - began < most


def at_once() -> Any:
    return within(0, 0.5)


def in_seconds(seconds: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)


# --- 429: wait as told ---

SPELLINGS: dict[str, tuple[Any, float, float]] = {
    "at once": (lambda: {"Retry-After": "0"}, 0, 2.0),
    "seconds": (lambda: {"Retry-After": "1"}, 0.9, 2.5),
    "milliseconds": (lambda: {"Retry-After-Ms": "300"}, 0.25, 2.5),
    "milliseconds win": (lambda: {"Retry-After-Ms": "100", "Retry-After": "50"}, 0.05, 2.5),
    "a date": (lambda: {"Retry-After": format_datetime(in_seconds(2), usegmt=True)}, 0.5, 3.5),
    "a date of RFC 850": (
        lambda: {"Retry-After": in_seconds(2).strftime("%A, %d-%b-%y %H:%M:%S GMT")},
        0.5,
        3.5,
    ),
    "a date of asctime": (lambda: {"Retry-After": in_seconds(2).strftime("%a %b %d %H:%M:%S %Y")}, 0.5, 3.5),
    "a date gone by": (lambda: {"Retry-After": format_datetime(in_seconds(-99), usegmt=True)}, 0, 2.0),
    "words": (lambda: {"Retry-After": "soon"}, 0, 2.0),
    "nothing": (dict, 0, 2.0),
}


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize(("spelling", "era"), some(SPELLINGS, (LEGACY, MODERN), each=1))
async def test_a_request_to_a_busy_server_is_retried_after_its_retry_after(spelling: str, era: str):
    headers, least, most = SPELLINGS[spelling]
    async with connected(era) as (host, server):
        server.on["tools/call"] = answers.first(1, answers.status(429, "busy", headers=headers()))
        with within(least, most):
            assert (await run(host)).text == "1"
        assert len(server.asked("tools/call")) == 2
        assert server.ledger.counts["k"] == 1


@pytest.mark.requirement("CAL-5")
@both_eras
async def test_a_request_to_a_busy_server_is_sent_four_times_at_most(era: str):
    async with connected(era, on={"tools/call": answers.status(429, "busy")}) as (host, server):
        with pytest.raises(HttpError, match="429") as caught:
            await run(host)
        assert (caught.value.status, caught.value.may_have_run) == (429, False)
        assert len(server.asked("tools/call")) == recovery.BUSY_LIMIT == 4
        assert not server.ledger.counts
        assert host.servers["x"].status == "connected"


@pytest.mark.requirement("CAL-5", "CAL-2")
@both_eras
@pytest.mark.parametrize(
    ("header", "limit_seconds", "said"),
    [
        ({"Retry-After": "30"}, 5, 30),
        ({"Retry-After-Ms": "5001"}, 5, 5.001),
        ({"Retry-After": "61"}, None, 61),
        ({"Retry-After": "86400"}, None, 86400),
        ({"Retry-After": "999999999999"}, 100_000, 999999999999),
    ],
    ids=["beyond the deadline", "just beyond it", "beyond what is waited for", "a day", "for ever"],
)
async def test_a_retry_after_that_is_too_long_is_an_error_at_once(
    era: str, header: dict[str, str], limit_seconds: float | None, said: float
):
    async with connected(era, on={"tools/call": answers.status(429, headers=header)}) as (host, server):
        with within(0, 2), pytest.raises(HttpError) as caught:
            await run(host, timeout_seconds=limit_seconds)
        assert caught.value.retry_after_seconds == said, "as the server said it"
        assert f"wait {said:.15g} s" in str(caught.value)
        assert len(server.asked("tools/call")) == 1


@pytest.mark.requirement("CAL-5", "CAL-2")
@both_eras
async def test_the_wait_for_a_busy_server_can_be_cancelled(era: str, monkeypatch: pytest.MonkeyPatch):
    waits = asyncio.Event()

    def react(*about: Any, **more: Any) -> recovery.Step:
        waits.set()
        return recovery.react(*about, **more)

    monkeypatch.setattr(attempts, "react", react)
    busy = answers.status(429, retry_after="30")
    async with connected(era, on={"tools/call": busy}) as (host, server):
        calling = asyncio.create_task(run(host))
        async with asyncio.timeout(5):
            await waits.wait()
        with at_once():
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        server.on.clear()
        assert (await run(host)).text == "1"
        assert len(server.asked("tools/call")) == 2, "the call that was given up is not made again"


# --- 5xx: never twice, unless the person believes that it does no harm ---


def runs_and_answers(server: Streamable, status: int, times: int, **more: Any) -> Answer:
    """The tool runs, and then something in front of the server breaks."""
    left = times

    async def answer(ask: Ask) -> Any:
        nonlocal left
        if left == 0:
            return None
        left -= 1
        server.ledger.enter(ask.params["arguments"]["key"])
        return await answers.status(status, "broken", **more)(ask)

    return answer


READS, REPEATS = {"readOnlyHint": True}, {"idempotentHint": True}
BELIEFS: dict[str, tuple[dict[str, Any], bool, int, bool]] = {
    "read-only, trusted, allowed": (READS, True, 1, True),
    "idempotent, trusted, allowed": (REPEATS, True, 1, True),
    "a liar": (READS, False, 1, False),
    "not allowed": (REPEATS, True, 0, False),
    "not said": ({}, True, 1, False),
    "merely not destructive": ({"destructiveHint": False}, True, 1, False),
}


@pytest.mark.requirement("CAL-5")
@both_eras
@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
@pytest.mark.parametrize(("hints", "trusted", "setting", "again"), BELIEFS.values(), ids=list(BELIEFS))
async def test_after_a_5xx_only_retry_safe_calls_are_repeated(
    era: str, status: int, hints: dict[str, Any], trusted: bool, setting: int, again: bool
):
    options: Any = {"entry": {"trusted": trusted}, "settings": {"DRAGOMAN_REPEAT_SAFE_CALLS": setting}}
    async with connected(era, **options) as (host, server):
        server.in_memory.add_tool(
            "look", lambda given, _: server.ledger.enter(given["key"]), annotations=hints
        )
        await host.reconnect("x")
        server.on["tools/call"] = runs_and_answers(server, status, 1)
        if again:
            assert (await host.call("mcp__x__look", KEY)).text == "2"
        else:
            with pytest.raises(HttpError) as caught:
                await host.call("mcp__x__look", KEY)
            assert (caught.value.status, caught.value.may_have_run) == (status, True)
            assert "may have run" in str(caught.value)
        assert server.ledger.counts["k"] == (2 if again else 1)


@pytest.mark.requirement("CAL-5")
@both_eras
async def test_a_retry_safe_call_is_sent_three_times_at_most(era: str):
    options: Any = {"entry": {"trusted": True}, "settings": {"DRAGOMAN_REPEAT_SAFE_CALLS": 1}}
    async with connected(era, **options) as (host, server):
        server.in_memory.add_tool("look", lambda *_: "", annotations=READS)
        await host.reconnect("x")
        server.on["tools/call"] = runs_and_answers(server, 503, 99, headers={"Retry-After-Ms": "20"})
        with pytest.raises(HttpError, match="503"):
            await host.call("mcp__x__look", KEY)
        assert server.ledger.counts["k"] == 3


@pytest.mark.requirement("CAL-5")
@both_eras
@pytest.mark.parametrize("status", [500, 503])
async def test_a_protocol_error_in_a_5xx_is_an_outcome_and_not_repeated(era: str, status: int):
    options: Any = {"entry": {"trusted": True}, "settings": {"DRAGOMAN_REPEAT_SAFE_CALLS": 1}}
    async with connected(era, **options) as (host, server):
        server.on["tools/call"] = answers.error(-32603, "the database is down", status=status)
        outcome = await run(host)
        assert isinstance(outcome.error, RemoteError)
        assert (outcome.error.remote_code, outcome.error.status) == (-32603, status)
        assert "the database is down" in outcome.text
        assert len(server.asked("tools/call")) == 1


# --- a session that is lost ---

LOST: list[answers.Lost] = ["404", "404 -32001", "400 -32000", "200 -32600"]


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("how", LOST)
async def test_a_call_whose_session_was_lost_is_repeated_once_in_a_new_session(how: answers.Lost):
    async with connected(LEGACY, lost_as=how) as (host, server):
        await server.lose_sessions()
        assert (await run(host)).text == "1"
        assert server.ledger.counts["k"] == 1
        assert [len(server.asked(what)) for what in ("initialize", "tools/call")] == [2, 2]
        assert server.faults == []


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("how", LOST)
async def test_a_second_loss_of_the_session_is_the_error(how: answers.Lost):
    async with connected(LEGACY, on={"tools/call": answers.session_lost(how)}) as (host, server):
        with pytest.raises(ConnectionLost) as caught:
            await run(host)
        assert (caught.value.was_refused, caught.value.may_have_run) == (True, False)
        assert len(server.asked("tools/call")) == 2
        assert not server.ledger.counts
        server.on.clear()
        assert (await run(host)).text == "1", "the next call is a matter of its own"


# --- -32042: a URL must be opened first ---


class Visitor:
    """Allows everything, and goes to pages as told; the last word holds for all that follow."""

    def __init__(self, *words: Literal["accept", "decline", "cancel"] | Exception | None) -> None:
        """None: never comes back."""
        self._words = list(words)
        self.visited: list[UrlElicitation] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        self.visited.append(question)
        word = self._words.pop(0) if len(self._words) > 1 else self._words[0]
        if isinstance(word, Exception):
            raise word
        if word is None:
            await asyncio.Event().wait()
            raise AssertionError
        return word


class Homebody:
    """Allows everything, and cannot be sent anywhere."""

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)


def page(url: Any = PAGE, message: Any = "Link your account \x1b[2J", **more: Any) -> dict[str, Any]:
    return {"mode": "url", "elicitationId": "e-1", "url": url, "message": message, **more}


def wants_pages(*pages: Any, data: Any = None) -> Answer:
    named = {"elicitations": list(pages)} if data is None else data
    return answers.error(-32042, "visit the page first", data=named)


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("times", [1, 2, 3])
async def test_a_call_is_repeated_after_each_page_up_to_three_times(times: int):
    visitor = Visitor("accept")
    async with connected(LEGACY, interaction=visitor) as (host, server):
        server.on["tools/call"] = answers.first(times, wants_pages(page()))
        assert (await run(host)).text == "1"
        assert server.ledger.counts["k"] == 1
        assert len(server.asked("tools/call")) == times + 1
    assert [(question.server, question.url) for question in visitor.visited] == [("x", PAGE)] * times
    assert not any("\x1b" in question.message for question in visitor.visited)


@pytest.mark.requirement("CAL-5")
async def test_after_three_pages_the_servers_error_is_the_outcome():
    visitor = Visitor("accept")
    async with connected(LEGACY, interaction=visitor, on={"tools/call": wants_pages(page())}) as (
        host,
        server,
    ):
        await says_no(host)
        assert (len(visitor.visited), len(server.asked("tools/call"))) == (3, 4)


async def says_no(host: Host, **options: Any) -> None:
    """The server's words are the outcome."""
    outcome = await run(host, **options)
    assert outcome.is_error
    assert isinstance(outcome.error, RemoteError)
    assert outcome.error.remote_code == -32042
    assert "visit the page first" in outcome.text


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize(
    ("who", "visits"),
    [
        (Visitor(RuntimeError("the window is gone")), 1),
        (Homebody(), 0),
        (None, 0),
    ],
    ids=["a front end that fails", "cannot be sent", "nobody"],
)
async def test_without_an_opened_page_the_servers_error_is_the_outcome(who: Any, visits: int):
    async with connected(LEGACY, interaction=who, on={"tools/call": wants_pages(page())}) as (host, server):
        await says_no(host)
        assert len(server.asked("tools/call")) == 1
        assert len(getattr(who, "visited", [])) == visits


@pytest.mark.requirement("CAL-5", "ASK-2")
@pytest.mark.parametrize(("action", "word"), [("decline", "declined"), ("cancel", "cancelled")])
async def test_a_declined_page_is_the_outcome(action: Any, word: str):
    who = Visitor(action)
    async with connected(LEGACY, interaction=who, on={"tools/call": wants_pages(page())}) as (host, server):
        outcome = await run(host)
        assert isinstance(outcome.error, UrlNotOpened)
        assert outcome.text == (
            f"URL elicitation was {word} by the user: x requires the user to open a URL before this call can "
            "be made. Make the call again to be asked again."
        )
        assert (len(who.visited), len(server.asked("tools/call"))) == (1, 1)


@pytest.mark.requirement("CAL-5")
async def test_several_pages_are_opened_one_by_one_and_a_refusal_ends_the_call():
    two = wants_pages(page("https://one.example/"), page("https://two.example/"))
    visitor = Visitor("accept", "accept", "accept", "decline")
    async with connected(LEGACY, interaction=visitor, on={"tools/call": two}) as (host, server):
        assert isinstance((await run(host)).error, UrlNotOpened)
        assert [question.url[8:11] for question in visitor.visited] == ["one", "two", "one", "two"]
        assert len(server.asked("tools/call")) == 2


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        "https://pages.example/",
        {"elicitations": []},
        {"elicitations": PAGE},
        {"elicitations": [PAGE]},
        {"elicitations": [{"url": 5}]},
        {"elicitations": [page(), {"message": "no address"}]},
        {"elicitations": [page(message=5)]},
        {"elicitations": [page()] * 6},
        {"elicitations": [page(), page("file:///etc/passwd")]},
    ],
    ids=lambda data: json.dumps(data)[:40],
)
async def test_pages_that_cannot_be_decoded_are_not_shown(data: Any):
    visitor = Visitor("accept")
    refusing = wants_pages(data=data)
    async with connected(LEGACY, interaction=visitor, on={"tools/call": refusing}) as (host, server):
        await says_no(host)
        assert (visitor.visited, len(server.asked("tools/call"))) == ([], 1)


@pytest.mark.requirement("CAL-2")
async def test_the_time_limit_of_a_call_applies_while_a_person_visits_a_page():
    visitor = Visitor(None)
    refusing = {"tools/call": wants_pages(page())}
    async with connected(LEGACY, interaction=visitor, on=refusing) as (host, server):
        with within(0.2, 1.5):
            async with asyncio.timeout(5):
                await says_no(host, timeout_seconds=0.3)
        assert (len(visitor.visited), len(server.asked("tools/call"))) == (1, 1)


@pytest.mark.requirement("CAL-2")
async def test_a_call_can_be_cancelled_while_a_person_visits_a_page():
    visitor = Visitor(None)
    async with connected(LEGACY, interaction=visitor, on={"tools/call": wants_pages(page())}) as (
        host,
        server,
    ):
        calling = asyncio.create_task(run(host))
        await until(lambda: visitor.visited)
        with at_once():
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        assert len(server.asked("tools/call")) == 1


# --- a page as a question of the server ---


async def ask_for_page(host: Host, server: Streamable, **params: Any) -> dict[str, Any]:
    """A legacy server asks on the stream on which it speaks by itself, while a call is under way; what it is
    answered."""
    await server.wait_for("GET")
    await until(lambda: server._viewings)
    calling = asyncio.create_task(host.call("mcp__x__hold", {}))
    await until(lambda: server.asked("tools/call"))
    server.push({"jsonrpc": "2.0", "id": "q1", "method": "elicitation/create", "params": params})
    await until(lambda: server.answers_heard, 5)
    calling.cancel()
    await asyncio.wait([calling])
    (answer,) = server.answers_heard
    assert answer["id"] == "q1"
    return answer


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("word", ["accept", "decline", "cancel"])
async def test_a_url_elicitation_of_a_legacy_server_is_asked_and_answered(word: Any):
    visitor = Visitor(word)
    async with connected(LEGACY, interaction=visitor) as (host, server):
        (opening,) = server.asked("initialize")
        assert opening.params["capabilities"] == {"elicitation": {"url": {}}}
        answer = await ask_for_page(host, server, **page())
        assert answer["result"] == {"action": word}
    (asked,) = visitor.visited
    assert (asked.server, asked.url) == ("x", PAGE)


@pytest.mark.requirement("CAL-5")
@pytest.mark.parametrize("word", ["accept", "decline", "cancel"])
async def test_a_url_elicitation_of_a_modern_server_is_asked_and_answered(word: Any):
    visitor = Visitor(word)

    def call(params: dict[str, Any]) -> dict[str, Any]:
        if "inputResponses" not in params:
            asked = {"method": "elicitation/create", "params": page()}
            return {"resultType": "input_required", "inputRequests": {"p": asked}, "requestState": "s"}
        said = json.dumps(params["inputResponses"])
        return {"resultType": "complete", "content": [{"type": "text", "text": said}]}

    async with connected(MODERN, interaction=visitor) as (host, server):
        replace_results(server, {"tools/call": call})
        outcome = await run(host)
        assert json.loads(outcome.text) == {"p": {"action": word}}
    assert [question.url for question in visitor.visited] == [PAGE]


async def test_without_an_interaction_a_url_elicitation_is_refused():
    async with connected(LEGACY, interaction=Homebody()) as (host, server):
        assert server.asked("initialize")[0].params["capabilities"] == {}
        answer = await ask_for_page(host, server, **page())
        assert answer["error"]["code"] == -32601


@both_eras
async def test_a_failing_interaction_leaves_no_server_waiting(era: str):
    visitor = Visitor(RuntimeError("the window is gone"))
    async with connected(era, interaction=visitor) as (host, server):
        if era == LEGACY:
            answer = await ask_for_page(host, server, **page())
            assert answer["result"] == {"action": "cancel"}
        else:
            asked = {"method": "elicitation/create", "params": page()}
            rounds = {"resultType": "input_required", "inputRequests": {"p": asked}}
            done = {"resultType": "complete", "content": []}
            heard: list[Any] = []

            def call(params: dict[str, Any]) -> dict[str, Any]:
                heard.append(params.get("inputResponses"))
                return rounds if heard[-1] is None else done

            replace_results(server, {"tools/call": call})
            assert not (await run(host)).is_error
            assert heard == [None, {"p": {"action": "cancel"}}]


# --- errors in the protocol's words are outcomes; other statuses are raised ---


@pytest.mark.requirement("CAL-5", "CAL-6")
@both_eras
@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603, -32000, -32050, 0, 7])
@pytest.mark.parametrize("status", [200, 400])
async def test_a_protocol_error_is_an_outcome_with_the_servers_message(era: str, code: int, status: int):
    said = answers.error(code, "that does not work \x1b[2J", status=status, data={"more": 1})
    async with connected(era, on={"tools/call": said}) as (host, server):
        outcome = await run(host)
        assert outcome.is_error
        assert isinstance(outcome.error, RemoteError)
        assert (outcome.error.remote_code, outcome.error.remote_data) == (code, {"more": 1})
        assert "that does not work" in outcome.text
        assert "\x1b" not in outcome.text
        assert len(server.asked("tools/call")) == 1
        assert host.servers["x"].status == "connected"


@pytest.mark.requirement("CAL-5")
@both_eras
@pytest.mark.parametrize("status", [400, 402, 403, 404, 405, 406, 409, 410, 413, 415, 418, 422, 425, 451])
async def test_any_other_status_is_raised_and_nothing_is_repeated(era: str, status: int):
    if era == LEGACY and status == 404:
        status = 431  # in a session, 404 says that it is gone
    async with connected(era, on={"tools/call": answers.html(status)}) as (host, server):
        with pytest.raises(HttpError, match=str(status)) as caught:
            await run(host)
        assert (caught.value.status, caught.value.may_have_run) == (status, False)
        assert len(server.asked("tools/call")) == 1
        assert host.servers["x"].status == "connected"


# --- time limits ---


def cancelled_ids(server: Streamable) -> list[Any]:
    return [ask.params["requestId"] for ask in server.asked("notifications/cancelled")]


async def told_once(era: str, server: Streamable) -> None:
    """That the call was given up, as the era wants it."""
    (call,) = server.asked("tools/call")
    told = (lambda: cancelled_ids(server)) if era == LEGACY else (lambda: server.given_up)
    await until(told, 5)
    assert told() == [call.id]
    assert cancelled_ids(server) == ([call.id] if era == LEGACY else [])


@pytest.mark.requirement("CAL-2")
@both_eras
@pytest.mark.parametrize(
    ("setting", "entry", "asked"),
    [(300, None, None), (60_000, 300, None), (60_000, 60_000, 0.3), (1, 1, 0.3)],
    ids=["the setting", "the entry's", "the caller's", "the caller's, though longer"],
)
async def test_the_shortest_time_limit_applies_and_one_cancellation_is_sent(
    era: str, setting: int, entry: int | None, asked: float | None
):
    options: Any = {"settings": {"MCP_TOOL_TIMEOUT": setting}}
    if entry is not None:
        options["entry"] = {"timeout": entry}
    async with connected(era, **options) as (host, server):
        with within(0.25, 1.5), pytest.raises(CallTimeout) as caught:
            await host.call("mcp__x__hold", {}, timeout_seconds=asked)
        assert (caught.value.timeout_seconds, caught.value.may_have_run) == (0.3, True)
        await told_once(era, server)
        assert (await run(host, timeout_seconds=20)).text == "1"


@pytest.mark.slow
@pytest.mark.requirement("CAL-2", "CAL-3")
@both_eras
@pytest.mark.parametrize("replies", ["sse", "json"])
async def test_progress_resets_the_time_limit_if_requested(era: str, replies: Any):
    steps = {"to": 8, "pause": 0.1}
    seen: list[Progress] = []
    async with connected(era, replies=replies) as (host, server):
        if era == LEGACY:
            await server.wait_for("GET")
            await until(lambda: server._viewings)
        outcome = await host.call(
            "mcp__x__count",
            steps,
            timeout_seconds=0.4,
            reset_timeout_on_progress=True,
            on_progress=seen.append,
        )
        assert outcome.text == "8"
        assert seen[-1].progress == 8
        assert [step.progress for step in seen] == sorted({step.progress for step in seen})
        quiet = await host.call("mcp__x__count", steps, timeout_seconds=0.4, reset_timeout_on_progress=True)
        assert quiet.text == "8", "without a progress listener"
        with pytest.raises(CallTimeout):
            await host.call("mcp__x__count", steps, timeout_seconds=0.4)
        with within(0.35, 1.5), pytest.raises(CallTimeout):
            await host.call("mcp__x__hold", {}, timeout_seconds=0.4, reset_timeout_on_progress=True)


@pytest.mark.requirement("CAL-2")
async def test_after_progress_the_input_rounds_of_a_call_have_the_reset_time_limit():
    """The limit was reset by each progress notification, so later steps are in time."""
    async with connected(MODERN, interaction=Visitor("accept")) as (host, server):
        asked = {"method": "elicitation/create", "params": page()}

        async def call(params: dict[str, Any], honest: Any) -> dict[str, Any]:
            found = await honest()
            if "inputResponses" in params:
                return found
            return {"resultType": "input_required", "inputRequests": {"p": asked}}

        server.in_memory.stories["tools/call"] = call
        steps = {"to": 6, "pause": 0.1}
        outcome = await host.call("mcp__x__count", steps, timeout_seconds=0.4, reset_timeout_on_progress=True)
        assert outcome.text == "6"


@pytest.mark.requirement("CAL-2", "CAL-5")
async def test_after_progress_a_repeated_call_has_the_reset_time_limit():
    visitor = Visitor("accept")
    async with connected(LEGACY, interaction=visitor) as (host, server):

        async def call(params: dict[str, Any], honest: Any) -> dict[str, Any]:
            found = await honest()
            if not visitor.visited:
                raise error(-32042, "visit the page first", {"elicitations": [page()]})
            return found

        server.in_memory.stories["tools/call"] = call
        steps = {"to": 6, "pause": 0.1}
        outcome = await host.call("mcp__x__count", steps, timeout_seconds=0.4, reset_timeout_on_progress=True)
        assert outcome.text == "6"


# --- cancelling ---

HANGS: dict[str, Answer | None] = {
    "a tool that never ends": None,
    "no answer at all": answers.never(),
    "a stream that only drips": answers.drip(0.01, headers=answers.EVENTS),
    "a body that only drips": answers.drip(0.01),
}


@pytest.mark.requirement("CAL-2")
@both_eras
@pytest.mark.parametrize("hangs", HANGS.values(), ids=list(HANGS))
async def test_cancelling_returns_at_once_while_the_server_hangs(era: str, hangs: Answer | None):
    async with connected(era, on={} if hangs is None else {"tools/call": hangs}) as (host, server):
        calling = asyncio.create_task(host.call("mcp__x__hold", {}))
        await server.wait_for("tools/call")
        if hangs is None:
            await server.ledger.wait_for("hold")
        with at_once():
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        if hangs is None or era == LEGACY:
            await told_once(era, server)
        server.on.clear()
        assert (await run(host)).text == "1"


@pytest.mark.requirement("CAL-2", "CAL-5")
async def test_cancelling_returns_at_once_while_a_lost_session_is_replaced():
    async with connected(LEGACY, lost_as="404") as (host, server):
        server.on["initialize"] = answers.never()
        await server.lose_sessions()
        calling = asyncio.create_task(run(host))
        await server.wait_for("initialize", 2)
        with at_once():
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
        assert not server.ledger.counts
