"""The handshake with a server: what is sent, when a process is started again, what is remembered."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from dragoman.connections.connect_limiter import ConnectLimiter
from dragoman.connections.eras import EraMemory
from dragoman.connections.handshake import Handshake, HandshakeResult
from dragoman.connections.target import ConnectionContext, ConnectionTarget
from dragoman.errors import (
    CallTimeout,
    ConnectError,
    ConnectionLost,
    DragomanError,
    HandshakeFailed,
    HttpError,
    MalformedReply,
    MessageTooLarge,
    RemoteError,
    SignInNeeded,
    Unreachable,
)
from dragoman.events import EventBus
from dragoman.settings import Settings
from dragoman.testing import FakeClock

pytestmark = pytest.mark.requirement("TRN-10")

MODERN, LEGACY = "2026-07-28", "2025-11-25"
CLIENT = {"name": "test", "version": "1"}


class After:
    """An answer that is given only once this method is asked; without an answer: never."""

    def __init__(self, method: str, said: "Said | None" = None) -> None:
        self.method = method
        self.said = said


Said = dict[str, Any] | DragomanError | After


def found(*versions: str, **more: Any) -> dict[str, Any]:
    return {"supportedVersions": list(versions), "capabilities": {"tools": {}}, **more}


def welcome(revision: str = LEGACY, **more: Any) -> dict[str, Any]:
    return {"protocolVersion": revision, "capabilities": {}, "serverInfo": {"name": "old"}, **more}


def status(number: int, **more: Any) -> HttpError:
    return HttpError("box", number, f"HTTP {number}", may_have_run=False, **more)


def unsupported(*versions: str) -> RemoteError:
    return RemoteError("box", -32022, "unsupported", {"supported": list(versions)})


SILENCE = CallTimeout("box", "x", 1)
LOST = ConnectionLost("box", "it exited with code 3", may_have_run=True)
NO_METHOD = RemoteError("box", -32601, "no such method")


class Talk:
    """A session that answers each method from a list of its own."""

    def __init__(self, answers: dict[str, list[Said]], *, fails_singly: bool = False) -> None:
        self._answers = {method: list(said) for method, said in answers.items()}
        self.fails_singly = fails_singly
        self.story: list[str] = []
        self.limits: list[float] = []
        self.params: list[Any] = []
        self.driver: Any = None
        self._asked: dict[str, asyncio.Event] = {}

    def use(self, driver: Any) -> None:
        self.driver = driver

    async def request(self, method: str, params: Any, *, timeout_seconds: float, send_cancelled: bool) -> Raw:
        assert not send_cancelled
        self.story.append(f"{method}@{self.driver.revision}")
        self.limits.append(timeout_seconds)
        self.params.append(params)
        self._asked.setdefault(method, asyncio.Event()).set()
        said = self._answers[method].pop(0)
        if isinstance(said, After):
            await self._asked.setdefault(said.method, asyncio.Event()).wait()
            said = said.said or await asyncio.Event().wait()
        if isinstance(said, DragomanError):
            raise said
        return Raw(msgspec.json.encode(said))

    def notify(self, method: str) -> None:
        self.story.append(f"{method}@{self.driver.revision}")

    async def close(self) -> None:
        self.story.append("close")


class Meeting:
    def __init__(self, *talks: Talk, refuses_older: ConnectError | None = None, **more: Any) -> None:
        self.talks = talks
        self.begun: list[str] = []
        self._refuses_older = refuses_older
        self.handshake = self._handshake(**more)

    def _handshake(
        self,
        *,
        protocol: str = "auto",
        remembered: str | None = None,
        connect_seconds: float = 30,
        probe_seconds: float = 3,
        has_older: bool = False,
    ) -> Handshake:
        milliseconds = {
            "MCP_TIMEOUT": round(connect_seconds * 1000),
            "DRAGOMAN_PROBE_TIMEOUT_MS": max(1, round(probe_seconds * 1000)),
        }
        clock = FakeClock()
        context = ConnectionContext(
            Settings(milliseconds, {}), clock, EventBus(), EraMemory(clock), CLIENT, ConnectLimiter(1, 1)
        )
        never: Any = None
        target = ConnectionTarget(
            make_transport=never, older_transport=(lambda: never) if has_older else None, protocol=protocol
        )
        return Handshake("box", target, context, {}, remembered, self._respawn)

    async def _respawn(self, older: bool) -> Any:
        self.begun.append("older" if older else "same")
        if older and self._refuses_older is not None:
            raise self._refuses_older
        return self.talks[len(self.begun)]

    async def run(self) -> tuple[Any, HandshakeResult]:
        return await self.handshake.run(self.talks[0])  # type: ignore[arg-type]


def remote(**answers: list[Said]) -> Talk:
    return Talk({name.replace("_", "/"): said for name, said in answers.items()}, fails_singly=True)


def local(**answers: list[Said]) -> Talk:
    return Talk({name.replace("_", "/"): said for name, said in answers.items()})


# --- the modern era ---


async def test_a_modern_server_is_detected_with_one_request():
    info = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "new", "version": "9"}}}
    meeting = Meeting(local(server_discover=[found(MODERN, instructions="be kind", **info)]))
    session, handshake_result = await meeting.run()

    assert session.story == [f"server/discover@{MODERN}"]
    assert (handshake_result.revision, handshake_result.instructions) == (MODERN, "be kind")
    assert (handshake_result.server_info.name, handshake_result.capabilities) == ("new", {"tools": {}})
    assert meeting.handshake.verdict == "modern"


@pytest.mark.parametrize("info", [None, 7, [], {"name": 7}, "x"], ids=repr)
async def test_a_server_name_that_cannot_be_read_is_empty(info: Any):
    meeting = Meeting(
        local(server_discover=[found(MODERN, _meta={"io.modelcontextprotocol/serverInfo": info})])
    )
    _, handshake_result = await meeting.run()

    assert handshake_result.server_info.name == ""


async def test_a_refusal_that_names_the_same_revision_is_retried_once():
    meeting = Meeting(local(server_discover=[unsupported(MODERN), found(MODERN)]))
    session, handshake_result = await meeting.run()

    assert session.story == [f"server/discover@{MODERN}"] * 2
    assert handshake_result.revision == MODERN


async def test_a_server_that_refuses_all_supported_revisions_is_a_failure():
    meeting = Meeting(local(server_discover=[unsupported("2099-01-01")]))
    with pytest.raises(HandshakeFailed, match="2099-01-01") as caught:
        await meeting.run()

    assert caught.value.hint


# --- the legacy era ---


@pytest.mark.parametrize(
    "answer",
    [
        NO_METHOD,
        RemoteError("box", -32000, "not initialized"),
        SILENCE,
        MalformedReply("box", "x"),
        MessageTooLarge("box", 1),
        {"no": "versions"},
    ],
    ids=str,
)
async def test_a_legacy_server_is_opened_on_the_same_process(answer: Said):
    meeting = Meeting(local(server_discover=[answer], initialize=[welcome()]))
    session, handshake_result = await meeting.run()

    assert session.story == [
        f"server/discover@{MODERN}",
        f"initialize@{LEGACY}",
        f"notifications/initialized@{LEGACY}",
    ]
    assert handshake_result.revision == LEGACY
    assert meeting.begun == []
    assert meeting.handshake.verdict == "legacy"
    assert meeting.handshake.is_from_timeout == (answer is SILENCE)


async def test_a_server_that_is_known_as_legacy_is_not_probed():
    meeting = Meeting(local(initialize=[welcome()]), remembered="legacy")
    session, _ = await meeting.run()

    assert session.story[0] == f"initialize@{LEGACY}"


async def test_a_process_that_ends_on_the_probe_is_started_again_without_one():
    meeting = Meeting(local(server_discover=[LOST]), local(initialize=[welcome()]))
    session, _ = await meeting.run()

    assert session is meeting.talks[1]
    assert meeting.talks[0].story[-1] == "close"
    assert (meeting.begun, meeting.handshake.verdict) == (["same"], "legacy")


async def test_the_revision_that_the_server_chose_is_used_from_then_on():
    meeting = Meeting(local(server_discover=[NO_METHOD], initialize=[welcome("2025-03-26")]))
    session, handshake_result = await meeting.run()

    assert handshake_result.revision == "2025-03-26"
    assert session.story[-1] == "notifications/initialized@2025-03-26"


@pytest.mark.parametrize(
    ("protocol", "chosen"), [("auto", "2099-01-01"), ("auto", MODERN), ("2025-06-18", "2025-03-26")]
)
async def test_a_revision_that_was_not_agreed_on_is_a_failure(protocol: str, chosen: str):
    meeting = Meeting(local(server_discover=[NO_METHOD], initialize=[welcome(chosen)]), protocol=protocol)
    with pytest.raises(HandshakeFailed, match=chosen):
        await meeting.run()


async def test_a_slow_modern_server_that_refuses_initialize_is_probed_again():
    meeting = Meeting(
        local(server_discover=[SILENCE, found(MODERN)], initialize=[RemoteError("box", -32022, "no")])
    )
    session, handshake_result = await meeting.run()

    assert session.story == [
        f"server/discover@{MODERN}",
        f"initialize@{LEGACY}",
        f"server/discover@{MODERN}",
    ]
    assert (handshake_result.revision, meeting.handshake.verdict) == (MODERN, "modern")


async def test_a_refusal_of_initialize_names_the_servers_revisions():
    meeting = Meeting(local(initialize=[unsupported(MODERN)]), protocol="legacy")
    with pytest.raises(HandshakeFailed, match=MODERN) as caught:
        await meeting.run()

    assert "auto" in (caught.value.hint or "")


async def test_the_probe_has_a_limited_share_of_the_time():
    """Its own limit is an hour; the whole connecting may take a moment."""
    never = local(server_discover=[After("initialize")], initialize=[welcome()])
    meeting = Meeting(never, connect_seconds=0.3, probe_seconds=3600)
    session, _ = await meeting.run()

    assert session.story[:2] == [f"server/discover@{MODERN}", f"initialize@{LEGACY}"]


# --- a server that is slow to start ---


@pytest.mark.parametrize("make", [local, remote])
@pytest.mark.parametrize("overtakes", [False, True])
async def test_an_answer_to_the_probe_counts_although_initialize_was_sent(
    make: Callable[..., Talk], overtakes: bool
):
    """Whichever of the two answers comes first, and whether or not `initialize` is answered."""
    slow = make(
        server_discover=[After("initialize", found(MODERN))],
        initialize=[welcome() if overtakes else After("never")],
    )
    meeting = Meeting(slow, probe_seconds=0)
    session, handshake_result = await meeting.run()

    assert session.story == [f"server/discover@{MODERN}", f"initialize@{LEGACY}"]
    assert session.driver.revision == MODERN
    assert (handshake_result.revision, handshake_result.capabilities) == (MODERN, {"tools": {}})
    assert meeting.handshake.verdict == "modern"


@pytest.mark.parametrize("make", [local, remote])
async def test_a_slow_server_that_is_pinned_to_the_modern_era_has_the_full_time(make: Callable[..., Talk]):
    slow = make(server_discover=[After("somebody else", found(MODERN))])
    meeting = Meeting(slow, probe_seconds=0, protocol=MODERN)
    running = asyncio.create_task(meeting.run())
    for _ in range(20):
        await asyncio.sleep(0)
    slow._asked["somebody else"].set()
    _, handshake_result = await running

    assert (handshake_result.revision, slow.story) == (MODERN, [f"server/discover@{MODERN}"])


@pytest.mark.parametrize("make", [local, remote])
async def test_a_late_refusal_of_the_probe_determines_the_era(make: Callable[..., Talk]):
    slow = make(server_discover=[After("initialize", NO_METHOD)], initialize=[welcome()])
    meeting = Meeting(slow, probe_seconds=0)
    _, handshake_result = await meeting.run()

    assert (handshake_result.revision, meeting.handshake.verdict) == (LEGACY, "legacy")
    assert not meeting.handshake.is_from_timeout


@pytest.mark.parametrize(("make", "verdict"), [(local, "legacy"), (remote, None)])
async def test_an_answer_to_initialize_alone_determines_the_era_only_over_stdio_and_counts_as_a_timeout(
    make: Callable[..., Talk], verdict: str | None, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dragoman.connections.handshake.LATE_SECONDS", 0.01)
    meeting = Meeting(make(server_discover=[After("never")], initialize=[welcome()]), probe_seconds=0)
    _, handshake_result = await meeting.run()

    assert (handshake_result.revision, meeting.handshake.verdict) == (LEGACY, verdict)
    assert meeting.handshake.is_from_timeout


@pytest.mark.parametrize("remembered", [None, "legacy"])
@pytest.mark.parametrize("code", [-32022, -32601])
async def test_a_server_that_does_not_support_initialize_is_probed_again(code: int, remembered: str | None):
    probes = [found(MODERN)] if remembered else [After("never"), found(MODERN)]
    meeting = Meeting(
        local(server_discover=probes, initialize=[RemoteError("box", code, "no")]),
        probe_seconds=0.01,
        remembered=remembered,
    )
    _, handshake_result = await meeting.run()

    assert (handshake_result.revision, meeting.handshake.verdict) == (MODERN, "modern")


async def test_of_two_refusals_the_one_of_initialize_is_reported():
    refusal = RemoteError("box", -32601, "no such method: initialize")
    meeting = Meeting(local(server_discover=[NO_METHOD, NO_METHOD], initialize=[refusal]))
    with pytest.raises(HandshakeFailed, match="no such method: initialize"):
        await meeting.run()


# --- over the network ---


@pytest.mark.parametrize("number", [400, 404, 405, 406, 415])
async def test_a_refusal_of_the_probe_without_details_means_legacy(number: int):
    meeting = Meeting(remote(server_discover=[status(number)], initialize=[welcome()]))
    await meeting.run()

    assert (meeting.begun, meeting.handshake.verdict) == ([], "legacy")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (status(401, challenge="Bearer"), SignInNeeded),
        (status(403), SignInNeeded),
        (status(429, retry_after_seconds=7), Unreachable),
        (status(500), Unreachable),
        (status(503, retry_after_seconds=7), Unreachable),
        (status(307), Unreachable),
        (ConnectionLost("box", "connection refused", may_have_run=False, hint="do"), Unreachable),
    ],
    ids=str,
)
@pytest.mark.parametrize("at_initialize", [False, True])
async def test_an_error_that_does_not_determine_the_era_is_raised_and_no_era_is_remembered(
    answer: HttpError | ConnectionLost, kind: type[ConnectError], at_initialize: bool
):
    answers = {"initialize": [answer]} if at_initialize else {"server_discover": [answer]}
    meeting = Meeting(
        remote(**answers),  # type: ignore[arg-type]
        remembered="legacy" if at_initialize else None,
        has_older=True,
    )
    with pytest.raises(kind) as caught:
        await meeting.run()

    assert type(caught.value) is kind
    assert caught.value.status == getattr(answer, "status", None)
    assert caught.value.hint == answer.hint
    assert (meeting.begun, meeting.handshake.verdict) == ([], None)


async def test_without_an_answer_over_the_network_legacy_is_tried_but_not_remembered():
    meeting = Meeting(remote(server_discover=[SILENCE], initialize=[welcome()]))
    _, handshake_result = await meeting.run()

    assert handshake_result.revision == LEGACY
    assert meeting.handshake.verdict is None


@pytest.mark.parametrize("number", [400, 404, 405])
async def test_a_server_that_refuses_post_is_connected_with_the_older_transport(number: int):
    meeting = Meeting(
        remote(server_discover=[status(405)], initialize=[status(number)]),
        remote(initialize=[welcome("2024-11-05")]),
        has_older=True,
    )
    session, handshake_result = await meeting.run()

    assert session is meeting.talks[1]
    assert meeting.talks[0].story[-1] == "close"
    assert (handshake_result.revision, meeting.begun, meeting.handshake.verdict) == (
        "2024-11-05",
        ["older"],
        "sse",
    )


@pytest.mark.parametrize(
    "more",
    [{"has_older": False}, {"has_older": True, "protocol": "2025-06-18"}],
    ids=["there is none", "the entry is pinned to a later revision"],
)
async def test_without_a_fallback_the_status_is_the_reason(more: dict[str, Any]):
    meeting = Meeting(remote(server_discover=[status(405)], initialize=[status(404, hint="h")]), **more)
    with pytest.raises(Unreachable, match="HTTP 404") as caught:
        await meeting.run()

    assert (caught.value.status, caught.value.hint, meeting.begun) == (404, "h", [])


async def test_if_the_older_transport_fails_too_the_first_reason_is_reported():
    meeting = Meeting(
        remote(server_discover=[status(405)], initialize=[status(404)]),
        has_older=True,
        refuses_older=Unreachable("box", "connect", "no stream of events"),
    )
    with pytest.raises(Unreachable, match="HTTP 404"):
        await meeting.run()

    assert meeting.handshake.verdict is None


async def test_if_the_older_transport_needs_authentication_that_is_reported():
    meeting = Meeting(
        remote(server_discover=[status(405)], initialize=[status(404)]),
        has_older=True,
        refuses_older=SignInNeeded("box", "connect", "HTTP 401", status=401),
    )
    with pytest.raises(SignInNeeded):
        await meeting.run()


async def test_the_older_transport_is_tried_once():
    meeting = Meeting(
        remote(server_discover=[status(405)], initialize=[status(404)]),
        remote(initialize=[status(404)]),
        has_older=True,
    )
    with pytest.raises(ConnectError):
        await meeting.run()

    assert meeting.begun == ["older"]


# --- what cannot be read ---


@pytest.mark.parametrize(
    "answer", [{}, {"protocolVersion": 7}, {"capabilities": {}}, MalformedReply("box", "html")], ids=str
)
@pytest.mark.parametrize("make", [local, remote])
async def test_an_initialize_result_that_cannot_be_read_is_an_error_of_the_server(
    answer: Said, make: Callable[..., Talk]
):
    meeting = Meeting(make(initialize=[answer]), protocol="legacy")
    with pytest.raises(HandshakeFailed) as caught:
        await meeting.run()

    assert "fault of the server" in (caught.value.hint or "")


async def test_the_handshake_sends_the_client_info():
    meeting = Meeting(local(initialize=[welcome("2025-06-18")]), protocol="2025-06-18")
    session, _ = await meeting.run()

    assert session.params == [{"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT}]


@pytest.mark.parametrize("answer", [NO_METHOD, SILENCE, status(404), LOST], ids=str)
async def test_an_entry_pinned_to_the_modern_era_never_falls_back(answer: Said):
    meeting = Meeting(local(server_discover=[answer]), protocol=MODERN, has_older=True)
    with pytest.raises(HandshakeFailed, match=MODERN):
        await meeting.run()

    assert meeting.begun == []
