"""The local callback listener to which the browser is redirected.

Only the genuine response completes a sign-in."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from dragoman.auth.callback import CallbackListener
from dragoman.errors import SignInFailed
from tests.servers.web.auth_world import AuthWorld, Onlooker, ended_at, visit
from tests.torture.bystander_host import at_once
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("AUT-1")

NOTHING_TO_DO = "Nothing to do here"
Attack = Callable[[str, str], Awaitable[object]]
"""A function from the genuine redirect URL, and its state, to the requests of an attacker."""


async def raw(target: str, request: str, *, wait: bool = True) -> bytes:
    port = urlsplit(target).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    try:
        await writer.drain()
        return await reader.read() if wait else b""
    except ConnectionError:
        return b""
    finally:
        writer.close()


def path_of(target: str) -> str:
    url = urlsplit(target)
    return f"{url.path}?{url.query}"


async def wrong_state(target: str, state: str) -> None:
    status, text = await visit(target.replace(state, "guessed"))
    assert (status, NOTHING_TO_DO in text, "guessed" in text) == (400, True, False)


async def missing_state(target: str, state: str) -> None:
    assert (await visit(target.replace(f"state={state}", "s=1")))[0] == 400


async def repeated_state(target: str, state: str) -> None:
    assert (await visit(f"{target}&state=guessed"))[0] == 400
    assert (await visit(target.replace(f"state={state}", f"state=guessed&state={state}")))[0] == 400


async def no_parameters(target: str, state: str) -> None:
    assert (await visit(target.partition("?")[0]))[0] == 400


async def many_parameters(target: str, state: str) -> None:
    more = "&".join(f"p{number}=1" for number in range(200))
    assert (await visit(f"{target}&{more}"))[0] == 400


async def other_methods(target: str, state: str) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH"):
        assert (await visit(target, method))[0] == 404


async def other_paths(target: str, state: str) -> None:
    base, _, query = target.partition("?")
    for path in (base.removesuffix("/callback") + "/", f"{base}/", f"{base}/x", base.upper(), f"{base}%2F"):
        assert (await visit(f"{path.replace('HTTP', 'http')}?{query}"))[0] == 404


async def another_host(target: str, state: str) -> None:
    port = urlsplit(target).port
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1.evil.example:{port}", ""):
        request = f"GET {path_of(target)} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        answer = await raw(target, request)
        assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
        assert state.encode() not in answer


async def a_megabyte(target: str, state: str) -> None:
    request = f"GET {path_of(target)}&x={'a' * 1_000_000} HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = await raw(target, request)
    assert answer == b"" or (answer.startswith(b"HTTP/1.0 400") and b"Content-Type: text/plain" in answer)


async def no_http(target: str, state: str) -> None:
    answer = await raw(target, f"{state} <script>\r\n\r\n")
    assert answer.startswith(b"HTTP/1.0 400")
    assert b"Content-Type: text/plain" in answer


async def slow_clients(target: str, state: str) -> None:
    """They stay open: neither the sign-in nor its end waits for them."""
    port = urlsplit(target).port
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /callback?co")
        LEFT_OPEN.append(writer)


LEFT_OPEN: list[asyncio.StreamWriter] = []
ATTACKS: dict[str, Attack] = {
    each.__name__: each
    for each in (
        wrong_state,
        missing_state,
        repeated_state,
        no_parameters,
        many_parameters,
        other_methods,
        other_paths,
        another_host,
        a_megabyte,
        no_http,
        slow_clients,
    )
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_t33_an_attack_on_the_listener_changes_nothing(name: str, caplog: pytest.LogCaptureFixture):
    genuine: list[asyncio.Task[tuple[int, str]]] = []

    async def act(url: str) -> None:
        target = await ended_at(url)
        state = urlsplit(target).query.partition("state=")[2].partition("&")[0]
        await ATTACKS[name](target, state)
        genuine.append(asyncio.create_task(visit(target)))

    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        screen = Onlooker(act)
        async with at_once(5):
            assert (await host.sign_in("x", screen)).status == "connected"
        assert genuine, "the sign-in ended before the genuine answer"
        status, text = await genuine[0]
        assert (status, "You are signed in" in text) == (200, True)
        assert len(world.token_requests) == 1
        with pytest.raises(OSError):  # the listener is closed
            await visit(await ended_at(screen.pages[0]))
    for writer in LEFT_OPEN:
        writer.close()
    LEFT_OPEN.clear()
    assert [record.getMessage() for record in caplog.records] == []


async def test_t33_a_second_response_is_not_accepted():
    async with AuthWorld() as world:
        held = asyncio.Event()

        async def slow_token(ask: object) -> None:
            await held.wait()

        async with host_of(world) as host:
            await host.ready(timeout=20)
            screen = Onlooker()
            signing = asyncio.create_task(host.sign_in("x", screen))
            await screen.shown.wait()
            world.on["/token"] = slow_token
            target = await ended_at(screen.pages[0])
            first = asyncio.create_task(visit(target))
            while not world.asked_at(world.auth, "/token"):
                await asyncio.sleep(0)
            assert (await visit(target))[0] == 400
            held.set()
            assert (await signing).status == "connected"
            assert (await first)[0] == 200
        assert len(world.token_requests) == 1


PASTED = {
    "not a URL": "hello",
    "nothing": "",
    "a broken host": "http://[",
    "too many parameters": "http://127.0.0.1/callback?" + "&".join(["a=1"] * 1000),
    "a megabyte": "http://127.0.0.1/callback?" + "a" * 1_000_000,
    "another state": "http://127.0.0.1/callback?code=c&state=guessed",
    "half a character": "http://127.0.0.1/callback?code=c&state=\udc80",
    "NUL": "\0",
}


async def test_t33_a_pasted_url_that_does_not_belong_to_the_sign_in_changes_nothing():
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        screen = Onlooker()
        signing = asyncio.create_task(host.sign_in("x", screen))
        await screen.shown.wait()
        for what, text in PASTED.items():
            assert screen.deliver(text) is False, what
        assert screen.deliver(await ended_at(screen.pages[0])) is True
        assert (await signing).status == "connected"


async def test_t33_a_callback_port_in_use_is_reported_before_anything_is_sent():
    with socket.create_server(("127.0.0.1", 0)) as squatter:
        port = squatter.getsockname()[1]
        async with AuthWorld() as world, host_of(world, callbackPort=port) as host:
            await host.ready(timeout=20)
            screen = Onlooker()
            with pytest.raises(SignInFailed) as caught:
                await host.sign_in("x", screen)
            assert caught.value.cause == (
                f"port {port} of this machine, to which the browser is to return, is not free "
                "(Address already in use)"
            )
            assert caught.value.hint == "Is another sign-in under way? Otherwise change oauth.callbackPort."
            assert (screen.pages, world.registrations) == ([], [])


async def test_t33_the_listener_accepts_connections_on_loopback_only():
    async with CallbackListener() as listener:
        port = urlsplit(listener.redirect_uri).port
        with open("/proc/net/tcp") as four, open("/proc/net/tcp6") as six:
            lines = [line.split() for line in (*four, *six)]
        hosts = {words[1].rpartition(":")[0] for words in lines if words[1].endswith(f":{port:04X}")}
        assert hosts <= {"0100007F", "00000000000000000000000001000000"}
        assert "0100007F" in hosts


async def test_t33_every_page_is_static_and_its_policy_forbids_all_content():
    async with CallbackListener() as listener:
        import aiohttp

        async with aiohttp.ClientSession() as session:
            for url in (listener.redirect_uri, listener.redirect_uri + "?code=<script>", "http://x/"):
                if url == "http://x/":
                    url = listener.redirect_uri.replace("/callback", "/<script>")
                async with session.get(url) as answer:
                    assert "<script" not in await answer.text()
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                    assert answer.headers["Cache-Control"] == "no-store"
                    assert answer.headers["Referrer-Policy"] == "no-referrer"
                    assert answer.headers["X-Frame-Options"] == "DENY"
                    assert "Access-Control-Allow-Origin" not in answer.headers


async def test_t33_a_cancelled_sign_in_closes_the_listener():
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        screen = Onlooker()
        signing = asyncio.create_task(host.sign_in("x", screen))
        await screen.shown.wait()
        target = await ended_at(screen.pages[0])
        signing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await signing
        with pytest.raises(OSError):
            await visit(target)
        assert world.token_requests == []
