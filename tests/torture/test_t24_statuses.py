"""T24: HTTP statuses: `Retry-After` is respected within limits, and a 401 or 403 does not count as a
failure."""

import datetime
import time
from contextlib import AsyncExitStack
from email.utils import format_datetime

import pytest

from dragoman.calls.recovery import BUSY_LIMIT
from dragoman.errors import HttpError
from dragoman.events import ServerStateChanged
from tests.servers.web import Answer, answers
from tests.torture.bystander_host import HOSTILE, at_once, until
from tests.torture.network import COMES_BACK, LEGACY, MODERN, Way, end_of, serves


def date_in(**distance: float) -> str:
    return format_datetime(datetime.datetime.now(datetime.UTC) + datetime.timedelta(**distance), usegmt=True)


def waits() -> dict[str, tuple[str, float | None, float | None]]:
    """Values of `Retry-After`, and the limits of the parsed wait; None: no value."""
    return {
        "seconds": ("7", 7, 7),
        "none": ("0", 0, 0),
        "ten years": (str(10 * 365 * 86400), 315_360_000, 315_360_000),
        "longer than the universe": ("9" * 4000, 1e12, 1e12),
        "a date": (date_in(seconds=60), 50, 61),
        "a date gone by": (date_in(days=-400), 0, 0),
        "a date in ten years": (date_in(days=3650), 315_350_000, 315_360_000),
        "a date that is none": ("Fri, 99 Foo 9999 99:99:99 GMT", None, None),
        "negative": ("-5", None, None),
        "a fraction": ("1.5", 1.5, 1.5),
        "words": ("later, please", None, None),
        "Unicode digits": ("٣", None, None),
    }


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("status", [429, 503])
async def test_t24_retry_after_is_parsed_and_limited(bystander_host, era: str, status: int):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        for what, (value, least, most) in waits().items():
            header = {"Retry-After": value.encode().decode("latin-1")}
            server.on["tools/call"] = answers.status(status, "not now", headers=header)
            before = len(server.asked("tools/call"))
            async with at_once():
                ended = await end_of(a, "echo", seconds=0.5, text="x")
            assert isinstance(ended, HttpError), f"{what}: {ended!r}"
            assert (ended.status, ended.may_have_run) == (status, status == 503)
            asked = ended.retry_after_seconds
            again = BUSY_LIMIT if status == 429 and asked == 0 else 1
            assert len(server.asked("tools/call")) == before + again, "nobody waits beyond the deadline"
            assert asked is None if least is None else least <= asked <= most, f"{what}: {asked}"
        server.on.clear()
        await serves(a)
        assert len(server.asked("initialize")) <= 1


@pytest.mark.requirement("TRN-2")
async def test_t24_an_error_status_fails_its_call_and_the_error_states_whether_it_may_have_run(
    bystander_host, era: str
):
    way = Way("http", era, "json")
    refused = dict.fromkeys((402, 403, 405, 406, 408, 409, 410, 413, 415, 418, 421, 425, 451), False)
    broken = dict.fromkeys((500, 501, 502, 503, 504, 507, 520, 599), True)
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        for status, may_have_run in {**refused, **broken}.items():
            server.on["tools/call"] = answers.first(1, answers.html(status))
            async with at_once():
                ended = await end_of(a, "echo", text="x")
            assert isinstance(ended, HttpError), f"{status}: {ended!r}"
            assert (ended.status, ended.may_have_run) == (status, may_have_run)
            assert str(status) in str(ended)
            assert "<html>" not in str(ended)
            assert a.view.status == "connected", f"{status}: {a.view.reason}"
        await serves(a)


# --- authentication ---

REFUSALS = {
    "401": answers.challenge(401),
    "401 without a challenge": answers.status(401),
    "403": answers.challenge(403, 'Bearer error="insufficient_scope", scope="files:read"'),
    "403 without a challenge": answers.status(403),
}
TYPES = [Way("http", LEGACY), Way("http", MODERN), Way("sse"), Way("ws")]


@pytest.mark.requirement("LIF-1", "LIF-3")
@pytest.mark.parametrize("way", TYPES, ids=str)
async def test_t24_a_server_that_answers_401_needs_a_sign_in_and_has_not_failed(bystander_host, way: Way):
    async with AsyncExitStack() as stack:
        servers = {
            f"s{number}": await stack.enter_async_context(way.server(on={"*": answer}))
            for number, answer in enumerate(REFUSALS.values())
        }
        entries = {name: way.entry(server) for name, server in servers.items()}
        async with bystander_host(others=entries, settings=COMES_BACK) as a:
            views = [a.host.servers[name] for name in servers]
            assert [view.status for view in views] == ["needs-auth"] * 4
            assert all("40" in (view.reason or "") for view in views)
            asked = [len(server.asks) for server in servers.values()]
            await a.bystander.call_often(50)
            assert [len(server.asks) for server in servers.values()] == asked, (
                "it is not asked again and again"
            )
            for name, server in servers.items():
                server.on.clear()
                await a.host.reconnect(name)
                await serves(a, server=name)
            statuses = {event.status for event in a.events if isinstance(event, ServerStateChanged)}
            assert "failed" not in statuses


@pytest.mark.requirement("LIF-1")
@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=list(REFUSALS))
async def test_t24_a_call_refused_with_401_or_403_ends_at_once_and_the_server_has_not_failed(
    bystander_host, era: str, refusal
):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["tools/call"] = answers.first(1, refusal)
        async with at_once():
            ended = await end_of(a, "echo", text="x")
        assert isinstance(ended, HttpError)
        assert (ended.status in (401, 403), ended.may_have_run) == (True, False)
        assert len(server.asked("tools/call")) == 1
        assert a.view.status == "connected"
        assert "failed" not in {event.status for event in a.happened(ServerStateChanged)}
        await serves(a)


# --- while connecting ---


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("way", TYPES, ids=str)
async def test_t24_a_server_that_is_unavailable_is_retried_a_limited_number_of_times(
    bystander_host, way: Way
):
    limits = {**COMES_BACK, "DRAGOMAN_RECONNECT_ATTEMPTS": 4}
    down = {"*": answers.status(502)}
    async with way.server(on=down) as server, bystander_host(way.entry(server), settings=limits) as a:
        assert "502" in (a.view.reason or "")
        await until(lambda: len(server.asks) >= 5)
        await until(lambda: a.view.status == "failed")
        await a.bystander.call_often(50)
        assert 5 <= len(server.asks) <= 10
        server.on.clear()
        await a.host.reconnect(HOSTILE)
        await serves(a)


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
async def test_t24_retry_after_during_a_connect_is_respected_and_delays_no_other(bystander_host):
    way = Way("http", LEGACY, "json")
    asking: dict[str, Answer] = {
        "soon": answers.status(503, retry_after="1"),
        "never": answers.status(503, retry_after=str(10 * 365 * 86400)),
    }
    async with AsyncExitStack() as stack:
        servers = {
            name: await stack.enter_async_context(way.server(on={"*": answer}))
            for name, answer in asking.items()
        }
        entries = {name: way.entry(server) for name, server in servers.items()}
        async with bystander_host(others=entries, settings=COMES_BACK) as a:
            asked = time.monotonic()
            views = [a.host.servers[name] for name in servers]
            assert all(view.status == "failed" and "503" in (view.reason or "") for view in views)
            for server in servers.values():
                server.on.clear()
            await serves(a, server="soon", seconds=4)
            assert time.monotonic() - asked > 0.7, "it got the time it asked for"
            assert len(servers["never"].asks) == 1
            async with at_once():
                await a.host.reconnect("never")  # a caller may cancel the wait
            await serves(a, server="never")
