"""T26: No redirect takes a secret or a message to another origin; the error names its target."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import DragomanError
from dragoman.errors import HttpError
from dragoman.transports.http import HttpTransport
from tests.servers.web import Answer, Ask, Site, Streamable, answers, site
from tests.torture.bystander_host import BystanderHost, at_once
from tests.torture.network import (
    COMES_BACK,
    LEGACY,
    MODERN,
    Way,
    end_of,
    facts,
    serves,
)

CODES = (301, 302, 303, 307, 308)
SECRET = "canary-4711"
HEADERS = {"Authorization": f"Bearer {SECRET}", "X-API-Key": SECRET}
TYPES = [Way("http", LEGACY), Way("http", MODERN), Way("sse"), Way("ws")]


@contextlib.asynccontextmanager
async def listener() -> AsyncIterator[Site]:
    """A server at another origin that accepts every request."""
    async with site(answers.body(answers.reply_to)) as here:
        yield here


def untouched(other: Site) -> None:
    assert other.asks == [], "something was sent to the other origin"
    assert other.connections == 0


# --- a call ---


@pytest.mark.requirement("TRN-2")
async def test_t26_a_redirect_of_a_call_to_another_origin_is_not_followed(bystander_host, era: str):
    way = Way("http", era, "json")
    async with listener() as other, way.server() as server:
        targets = {
            f"{other.origin}/mcp?token=t#f": other.origin,
            f"//127.0.0.1:{other.port}/mcp": other.origin,
            f"http://user:pass@127.0.0.1:{other.port}/": other.origin,
            f"https://127.0.0.1:{server.port}/mcp": f"https://127.0.0.1:{server.port}",
            f"http://localhost:{server.port}/mcp": f"http://localhost:{server.port}",
            f"http://127.0.0.2:{server.port}/mcp": f"http://127.0.0.2:{server.port}",
            "file:///etc/passwd": "file:",
            "javascript:alert(1)": "javascript:",
        }
        async with bystander_host(way.entry(server, headers=HEADERS), settings=COMES_BACK) as a:
            for target, origin in targets.items():
                for code in CODES:
                    server.on["tools/call"] = answers.first(1, answers.redirect(code, target))
                    ended = await refused(a, code)
                    assert origin in str(ended), f"{target}: {ended}"
                    assert "token=t" not in str(ended)
                    assert "pass" not in str(ended).replace("passwd", "")
            await serves(a)
            untouched(other)
        assert len(server.asked("initialize")) <= 1


async def refused(a: BystanderHost, code: int) -> HttpError:
    async with at_once():
        ended = await end_of(a, "ledger", key="one")
    assert isinstance(ended, HttpError), repr(ended)
    assert (ended.status, ended.may_have_run) == (code, False)
    assert SECRET not in str(ended)
    assert ended.hint
    assert "not followed" in ended.hint
    return ended


INVALID_TARGETS = {
    "nowhere": {},
    "empty": {"Location": ""},
    "bad port": {"Location": "http://127.0.0.1:99999999/"},
    "bad brackets": {"Location": "http://[::1/"},
    "long": {"Location": "http://" + "a" * 5000 + "/"},
    "escape": {"Location": "http://a\x1b[2Jb/"},
    "itself": {"Location": "/mcp"},
}


@pytest.mark.requirement("TRN-2")
async def test_t26_an_invalid_redirect_ends_the_call_with_a_clear_error(bystander_host, era: str):
    way = Way("http", era, "json")
    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        for headers in INVALID_TARGETS.values():
            for code in (302, 307):
                server.on["tools/call"] = answers.first(5, spelled(code, headers))
                ended = await refused(a, code)
                assert "\x1b" not in str(ended)
                assert len(str(ended)) < 1000
                del server.on["tools/call"]
        await serves(a)


def spelled(code: int, headers: dict[str, str]) -> Any:
    """aiohttp's server refuses to write some of these."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return answers.raw(
        lambda _: f"HTTP/1.1 {code} Moved\r\n{lines}Content-Length: 0\r\n\r\n".encode("latin-1")
    )


# --- within the same origin ---


def moved(code: int, path: str) -> Answer:
    """A redirect from the first URL; requests to the new one are answered by the server."""

    async def answer(ask: Ask) -> Any:
        return await answers.redirect(code, path)(ask) if ask.path == "/mcp" else None

    return answer


@pytest.mark.requirement("TRN-2")
@pytest.mark.parametrize("headers", [HEADERS, {}], ids=["secret", "no-secret"])
async def test_t26_within_its_origin_only_a_redirect_that_keeps_the_message_and_has_no_secret_is_followed(
    bystander_host, era: str, headers: dict[str, str]
):
    """307 and 308 keep the message; 301 to 303 would change the request."""
    way = Way("http", era, "json")
    async with contextlib.AsyncExitStack() as stack:
        servers = {f"s{code}": await stack.enter_async_context(way.server()) for code in CODES}
        entries = {name: way.entry(server, headers=headers) for name, server in servers.items()}
        async with bystander_host(others=entries, settings=COMES_BACK) as a:
            for code, (name, server) in zip(CODES, servers.items(), strict=True):
                server.on["tools/call"] = moved(code, "/new/place?x=1")
                ended = await end_of(a, "ledger", server=name, key="one")
                followed = [ask for ask in server.asked("tools/call") if ask.path == "/new/place?x=1"]
                if code in (307, 308) and not headers:
                    assert (ended, len(followed), server.ledger.counts["one"]) == ("1", 1, 1)
                else:
                    assert facts(ended) == ("http-status", False)
                    assert f"{server.origin}/new/place" in str(ended)
                    assert followed == []


@pytest.mark.requirement("TRN-2")
async def test_t26_a_redirect_loop_is_ended_soon(bystander_host, era: str):
    way = Way("http", era, "json")

    async def onwards(ask: Ask) -> Any:
        number = int(ask.path.rpartition("/")[2]) if ask.path[-1].isdigit() else 0
        return await answers.redirect(307, f"/hop/{(number + 1) % 50}")(ask)

    async with way.server() as server, bystander_host(way.entry(server), settings=COMES_BACK) as a:
        server.on["tools/call"] = onwards
        async with at_once():
            assert facts(await end_of(a, "echo", text="x")) == ("http-status", False)
        assert len(server.asked("tools/call")) <= 4


# --- everything that is not a call ---


@pytest.mark.requirement("TRN-2", "TRN-3", "TRN-4")
@pytest.mark.parametrize("way", TYPES, ids=str)
async def test_t26_a_redirect_while_connecting_is_not_followed_to_another_origin(bystander_host, way: Way):
    async with listener() as other, contextlib.AsyncExitStack() as stack:
        scheme = "ws" if way.type == "ws" else "http"
        target = f"{scheme}://127.0.0.1:{other.port}/mcp"
        entries = {}
        for code in CODES:
            server = await stack.enter_async_context(way.server(on={"*": answers.redirect(code, target)}))
            entries[f"s{code}"] = way.entry(server, headers=HEADERS)
        async with bystander_host(others=entries) as a:
            for code in CODES:
                view = a.host.servers[f"s{code}"]
                assert view.status == "failed"
                assert f"127.0.0.1:{other.port}" in (view.reason or ""), view.reason
                assert SECRET not in (view.reason or "")
        untouched(other)


def ended_and_redirected(server: Streamable, astray: Answer) -> Answer:
    """The session ends as requested, so that nothing of it is left over."""

    async def answer(ask: Ask) -> Any:
        await server._delete(ask)
        return await astray(ask)

    return answer


@pytest.mark.requirement("TRN-2", "TRN-3")
@pytest.mark.parametrize("leg", ["GET", "DELETE", "notifications/initialized", "resume", "post"])
async def test_t26_no_other_request_of_a_session_follows_a_redirect_to_another_origin(
    bystander_host, leg: str
):
    way = Way("sse") if leg == "post" else Way("http", LEGACY)
    options = {"resumable": True, "priming": True, "retry_ms": 1} if way.type == "http" else {}
    async with listener() as other, way.server(**options) as server:
        for code in CODES:
            astray = answers.redirect(code, f"{other.origin}/mcp")
            if leg in ("GET", "notifications/initialized"):
                server.on[leg] = astray
            elif isinstance(server, Streamable) and leg == "DELETE":
                server.on[leg] = ended_and_redirected(server, astray)
            async with bystander_host(way.entry(server, headers=HEADERS), settings=COMES_BACK) as a:
                if leg == "resume":
                    opening = answers.body(lambda _: b"id: 1\nretry: 1\ndata:\n\n", headers=answers.EVENTS)
                    server.on.update({"tools/call": answers.first(1, opening), "GET": astray})
                elif leg == "post":
                    server.on["tools/call"] = answers.first(1, astray)
                async with at_once():
                    ended = await end_of(a, "ledger", key=f"{code}")
                assert isinstance(ended, DragomanError) or leg not in ("resume", "post")
                server.on.pop("tools/call", None)
            server.on.clear()
        untouched(other)


@pytest.mark.requirement("TRN-3")
async def test_t26_an_sse_endpoint_at_another_origin_is_refused(bystander_host):
    way = Way("sse")
    async with listener() as other, way.server(endpoint=f"{other.origin}/messages") as server:
        async with bystander_host(way.entry(server, headers=HEADERS)) as a:
            assert a.view.status == "failed"
            assert other.origin in (a.view.reason or "")
        untouched(other)


async def test_t26_a_mutant_that_follows_redirects_is_detected(
    bystander_host, monkeypatch: pytest.MonkeyPatch
):
    def follow(transport: HttpTransport, response: Any) -> Any:
        to = response.headers.get("Location")
        return transport._url.join(type(transport._url)(to)) if to else None

    monkeypatch.setattr(HttpTransport, "_moved_to", follow)
    way = Way("http", LEGACY, "json")
    async with listener() as other, way.server() as server:
        async with bystander_host(way.entry(server, headers=HEADERS), settings=COMES_BACK) as a:
            server.on["tools/call"] = answers.first(1, answers.redirect(307, other.url))
            await end_of(a, "ledger", key="one")
            await server.lose_sessions()  # its end is reported to the other server
        assert other.asks[0].headers["X-API-Key"] == SECRET
        with pytest.raises(AssertionError, match="sent to the other origin"):
            untouched(other)
