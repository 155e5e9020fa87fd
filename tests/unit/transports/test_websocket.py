"""MCP over a WebSocket, against real servers on loopback."""

import asyncio
import base64
import contextlib
import datetime
import hashlib
import ipaddress
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from dragoman.errors import SignInNeeded, Unreachable
from dragoman.transports import websocket
from dragoman.transports.web import Network
from dragoman.transports.websocket import (
    WAITING_BYTES,
    WAITING_MESSAGES,
    WebSocketTransport,
    describe_close,
    describe_fault,
)
from tests.unit.transports.sinks import RecordingSink, open_files, other_tasks, settled, site

Talk = Callable[[web.WebSocketResponse], Awaitable[None]]
LIMIT = 10_000


class Door:
    """A server that talks as the test says, once the upgrade is done."""

    def __init__(self, talk: Talk | None = None, *, protocols: tuple[str, ...] = ("mcp",)) -> None:
        self._talk = talk or self.echo
        self._protocols = protocols
        self.handshakes: list[dict[str, str]] = []
        self.received: list[bytes | str] = []
        self.closes: list[int | None] = []
        self.port = 0

    async def echo(self, link: web.WebSocketResponse) -> None:
        async for message in link:
            self.received.append(message.data)
            if isinstance(message.data, str):
                await link.send_str(message.data)
            else:
                await link.send_bytes(message.data)

    async def handle(self, request: web.Request) -> web.WebSocketResponse:
        self.handshakes.append(dict(request.headers))
        link = web.WebSocketResponse(protocols=self._protocols, max_msg_size=0)
        await link.prepare(request)
        try:
            await self._talk(link)
        finally:
            self.closes.append(link.close_code)
        return link

    @contextlib.asynccontextmanager
    async def serving(self, ssl_context: ssl.SSLContext | None = None) -> AsyncIterator["Door"]:
        async with site(web.get("/ws", self.handle), ssl_context=ssl_context) as self.port:
            yield self

    def transport(self, **more: str) -> WebSocketTransport:
        network = Network(f"ws://127.0.0.1:{self.port}/ws", {"X-Key": "k"}, **more)
        return WebSocketTransport("box", network, limit_bytes=LIMIT)


@contextlib.asynccontextmanager
async def opened(door: Door) -> AsyncIterator[tuple[WebSocketTransport, RecordingSink]]:
    async with door.serving():
        transport, sink = door.transport(), RecordingSink()
        try:
            await transport.open(sink)
            yield transport, sink
        finally:
            await transport.close()


async def until_closed(link: web.WebSocketResponse) -> None:
    async for _ in link:
        pass


def says(*frames: str | bytes) -> Talk:
    async def talk(link: web.WebSocketResponse) -> None:
        for frame in frames:
            await (link.send_str(frame) if isinstance(frame, str) else link.send_bytes(frame))
        await until_closed(link)

    return talk


@pytest.mark.requirement("TRN-4")
async def test_messages_are_sent_and_received_in_order_as_text():
    door = Door()
    sent = [b'{"n":%d,"text":"\xc3\xa9"}' % number for number in range(200)]
    async with opened(door) as (transport, sink):
        for message in sent:
            transport.send(message)
        await sink.until(lambda: len(sink.messages) == 200)

    assert sink.messages == sent
    assert all(isinstance(message, str) for message in door.received)
    assert sink.ends == []


@pytest.mark.requirement("TRN-4")
async def test_the_handshake_offers_the_mcp_subprotocol_sends_the_headers_and_offers_no_compression():
    door = Door()
    async with opened(door):
        pass

    (handshake,) = door.handshakes
    assert handshake["Sec-WebSocket-Protocol"] == "mcp"
    assert handshake["X-Key"] == "k"
    assert "Sec-WebSocket-Extensions" not in handshake


async def test_text_and_binary_frames_are_messages_and_empty_ones_are_ignored():
    async with opened(Door(says("text", b"binary", "", b""))) as (_, sink):
        await sink.until(lambda: len(sink.messages) == 2)

    assert sink.messages == [b"text", b"binary"]


async def test_a_server_that_selects_no_subprotocol_is_accepted():
    async with opened(Door(protocols=())) as (transport, sink):
        transport.send(b"{}")
        await sink.until(lambda: sink.messages)


@pytest.mark.requirement("TRN-4")
async def test_a_server_that_selects_another_subprotocol_is_refused():
    async def handle(request: web.Request) -> web.StreamResponse:
        key = request.headers["Sec-WebSocket-Key"].encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        response = web.Response(status=101)
        response.headers["Upgrade"] = "websocket"
        response.headers["Connection"] = "upgrade"
        response.headers["Sec-WebSocket-Accept"] = base64.b64encode(hashlib.sha1(key).digest()).decode()
        response.headers["Sec-WebSocket-Protocol"] = "chat"
        return response

    async with site(web.get("/ws", handle)) as port:
        transport = WebSocketTransport("box", Network(f"ws://127.0.0.1:{port}/ws"), limit_bytes=LIMIT)
        with pytest.raises(Unreachable, match="subprotocol chat"):
            await transport.open(RecordingSink())


async def refused_with(response: web.Response) -> Exception:
    async def handle(request: web.Request) -> web.Response:
        return response

    async with site(web.get("/ws", handle)) as port:
        files, tasks = open_files(), other_tasks()
        transport = WebSocketTransport("box", Network(f"ws://127.0.0.1:{port}/ws"), limit_bytes=LIMIT)
        with pytest.raises((Unreachable, SignInNeeded)) as caught:
            await transport.open(RecordingSink())
        await settled(lambda: open_files() <= files and other_tasks() == tasks)
    return caught.value


@pytest.mark.parametrize("status", [401, 403])
async def test_a_handshake_answered_with_401_needs_authentication(status: int):
    error = await refused_with(web.Response(status=status, headers={"WWW-Authenticate": "Bearer"}))

    assert isinstance(error, SignInNeeded)
    assert (error.status, error.challenge) == (status, "Bearer")


@pytest.mark.parametrize("status", [200, 400, 404, 426, 429, 500, 503])
async def test_a_refused_handshake_reports_the_status(status: int):
    error = await refused_with(web.Response(status=status, text="because", headers={"Retry-After": "7"}))

    assert isinstance(error, Unreachable)
    assert error.status == status
    assert error.retry_after_seconds == 7
    assert "because" in str(error)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(status: int):
    door = Door()
    async with door.serving():
        location = f"http://127.0.0.1:{door.port}/ws"
        error = await refused_with(web.Response(status=status, headers={"Location": location}))

    assert isinstance(error, Unreachable)
    assert error.status == status
    assert door.handshakes == []


async def test_a_closed_port_is_unreachable():
    async with site() as port:
        pass
    transport = WebSocketTransport("box", Network(f"ws://127.0.0.1:{port}/ws"), limit_bytes=LIMIT)
    with pytest.raises(Unreachable, match="refused"):
        await transport.open(RecordingSink())
    with pytest.raises(ConnectionError):
        transport.send(b"{}")


async def test_a_handshake_without_an_answer_has_a_time_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket, "HANDSHAKE_SECONDS", 0.2)

    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async with site(web.get("/ws", never)) as port:
        transport = WebSocketTransport("box", Network(f"ws://127.0.0.1:{port}/ws"), limit_bytes=LIMIT)
        with pytest.raises(Unreachable, match="no answer in time"):
            await transport.open(RecordingSink())


async def test_a_cancelled_open_leaves_nothing_behind():
    asked = asyncio.Event()

    async def never(request: web.Request) -> web.Response:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    async with site(web.get("/ws", never)) as port:
        tasks, files = other_tasks(), open_files()
        transport = WebSocketTransport("box", Network(f"ws://127.0.0.1:{port}/ws"), limit_bytes=LIMIT)
        opening = asyncio.create_task(transport.open(RecordingSink()))
        await asyncio.wait_for(asked.wait(), 10)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await settled(lambda: other_tasks() == tasks and open_files() <= files)


async def test_a_close_frame_ends_the_connection_with_its_code_and_cleaned_reason():
    async def talk(link: web.WebSocketResponse) -> None:
        await link.send_str("last")
        await link.close(code=4001, message="over\x1b[31m \u202enow".encode())

    async with opened(Door(talk)) as (transport, sink):
        await sink.until(lambda: sink.ends)
        with pytest.raises(ConnectionError):
            transport.send(b"{}")

    assert sink.messages == [b"last"]
    assert sink.ends == ["it closed the connection with code 4001: over\\x1b[31m \\u202enow"]


async def test_an_end_without_a_close_frame_is_reported():
    async def talk(link: web.WebSocketResponse) -> None:
        transport = link.get_extra_info("socket")
        assert transport is not None
        request = link._req  # the server's end, cut from below
        assert request is not None
        assert request.transport is not None
        request.transport.abort()
        await until_closed(link)

    async with opened(Door(talk)) as (_, sink):
        await sink.until(lambda: sink.ends)

    assert len(sink.ends) == 1
    assert sink.ends[0]


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (1000, "", "it closed the connection with code 1000"),
        (0, "", "it closed the connection"),
        (None, None, "it closed the connection"),
        (4000, "a\nb", "it closed the connection with code 4000: a\\nb"),
    ],
)
def test_the_message_for_each_close_code(code: object, reason: object, expected: str):
    assert describe_close(code, reason) == expected


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (None, "without a close frame"),
        (aiohttp.ServerTimeoutError(), "pings"),
        (aiohttp.WebSocketError(1009, "big"), "limit of 7 bytes"),
        (aiohttp.WebSocketError(1002, "bad\x1b"), r"protocol: bad\\x1b"),
        (ConnectionResetError(104, "x"), "reset"),
    ],
)
def test_the_message_for_each_failure(error: BaseException | None, expected: str):
    assert re.search(expected, describe_fault(error, 7))


async def test_a_message_of_exactly_the_limit_passes():
    async with opened(Door(says("x" * LIMIT, b"y" * LIMIT))) as (_, sink):
        await sink.until(lambda: len(sink.messages) == 2)

    assert [len(message) for message in sink.messages] == [LIMIT, LIMIT]


@pytest.mark.requirement("TRN-9")
async def test_a_message_over_the_limit_ends_the_connection_with_a_named_cause():
    async with opened(Door(says("fine", "x" * (LIMIT + 1), "never read"))) as (_, sink):
        await sink.until(lambda: sink.ends)

    assert sink.messages == [b"fine"]
    assert sink.ends == [f"it sent a message larger than the limit of {LIMIT} bytes"]


async def test_bytes_that_are_not_utf_8_are_passed_to_the_decoder():
    async def talk(link: web.WebSocketResponse) -> None:
        await link.send_frame(b'{"bad":"\xff"}', aiohttp.WSMsgType.TEXT)
        await link.send_str("next")
        await until_closed(link)

    async with opened(Door(talk)) as (_, sink):
        await sink.until(lambda: len(sink.messages) == 2)

    assert sink.messages == [b'{"bad":"\xff"}', b"next"]


async def test_closing_sends_a_close_frame_and_reports_no_end():
    door = Door()
    async with opened(door) as (transport, sink):
        await transport.close()
        await transport.close()
        await settled(lambda: door.closes)

    assert door.closes == [1000]
    assert sink.ends == []


async def test_a_peer_that_does_not_read_is_congestion_and_does_not_delay_the_close():
    held = asyncio.Event()

    async def talk(link: web.WebSocketResponse) -> None:
        link.get_extra_info("socket")
        request = link._req  # stops reading from below
        assert request is not None
        assert request.transport is not None
        request.transport.pause_reading()  # pyright: ignore
        held.set()
        await asyncio.Event().wait()

    async with opened(Door(talk)) as (transport, sink):
        await asyncio.wait_for(held.wait(), 10)
        message = b"x" * 200_000
        sent = 0
        while not transport.congested:
            transport.send(message)
            sent += 1
            await asyncio.sleep(0)
        assert sent * len(message) > WAITING_BYTES
        waiting = asyncio.create_task(transport.drained())
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.wait_for(transport.close(), 5)
        await asyncio.wait_for(waiting, 1)

    assert sink.ends == []


async def test_a_peer_that_never_reads_again_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket, "STALL_SECONDS", 0.2)

    async def talk(link: web.WebSocketResponse) -> None:
        request = link._req
        assert request is not None
        assert request.transport is not None
        request.transport.pause_reading()  # pyright: ignore
        await asyncio.Event().wait()

    async with opened(Door(talk)) as (transport, sink):
        while not transport.congested:
            transport.send(b"x" * 200_000)
            await asyncio.sleep(0)
        await sink.until(lambda: sink.ends)

    assert "not read" in sink.ends[0]


async def test_many_small_messages_that_wait_are_congestion():
    async with opened(Door()) as (transport, sink):
        for _ in range(WAITING_MESSAGES):
            transport.send(b"{}")
        assert not transport.congested
        transport.send(b"{}")
        assert transport.congested
        await asyncio.wait_for(transport.drained(), 10)
        await sink.until(lambda: len(sink.messages) == WAITING_MESSAGES + 1)


async def test_a_peer_that_does_not_answer_pings_is_a_lost_connection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(websocket, "HEARTBEAT_SECONDS", 0.2)

    async def talk(link: web.WebSocketResponse) -> None:
        await asyncio.Event().wait()  # reads nothing, so it answers nothing

    async with opened(Door(talk)) as (_, sink):
        await sink.until(lambda: sink.ends)

    assert sink.ends == ["it no longer answers pings"]


async def test_closing_leaves_no_task_and_no_file_open():
    door = Door()
    async with door.serving():
        tasks, files = other_tasks(), open_files()
        for _ in range(3):
            transport, sink = door.transport(), RecordingSink()
            await transport.open(sink)
            transport.send(b"{}")
            await sink.until(lambda sink=sink: sink.messages)
            await transport.close()
        await settled(lambda: other_tasks() == tasks and open_files() <= files)


class Proxy:
    """A proxy that knows CONNECT only."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.heads: list[bytes] = []
        self._answer = answer
        self.port = 0

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        writer.write(self._answer)
        if head.startswith(b"CONNECT ") and b" 200 " in self._answer:
            host, _, port = head.split(b" ")[1].rpartition(b":")
            to_reader, to_writer = await asyncio.open_connection(host.decode(), int(port))
            await asyncio.gather(self._pass(reader, to_writer), self._pass(to_reader, writer))
        writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator["Proxy"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self


@pytest.mark.requirement("TRN-4")
async def test_a_ws_url_is_connected_through_a_proxy_with_connect():
    door, proxy = Door(), Proxy()
    async with door.serving(), proxy.serving():
        tasks, files = other_tasks(), open_files()
        transport = door.transport(proxy=f"http://me:pa%20ss@127.0.0.1:{proxy.port}")
        sink = RecordingSink()
        await transport.open(sink)
        transport.send(b"{}")
        await sink.until(lambda: sink.messages)
        await transport.close()
        await settled(lambda: other_tasks() == tasks and open_files() <= files)

    (head,) = proxy.heads
    assert head.startswith(f"CONNECT 127.0.0.1:{door.port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:pa ss") in head
    assert b"X-Key" not in head
    assert "Proxy-Authorization" not in door.handshakes[0]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who\r\n\r\n", b"nonsense\r\n\r\n", b"", b"x" * 100_000])
async def test_a_proxy_that_refuses_is_named(answer: bytes):
    door, proxy = Door(), Proxy(answer)
    async with door.serving(), proxy.serving():
        transport = door.transport(proxy=f"http://me:secret@127.0.0.1:{proxy.port}")
        with pytest.raises(Unreachable, match="proxy") as caught:
            await transport.open(RecordingSink())

    assert "secret" not in str(caught.value)
    assert door.handshakes == []


@pytest.mark.parametrize("proxy", ["http://127.0.0.1:1", "https://127.0.0.1:1", "socks5://127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_used_is_named(proxy: str):
    door = Door()
    async with door.serving():
        with pytest.raises(Unreachable, match="proxy"):
            await door.transport(proxy=proxy).open(RecordingSink())

    assert door.handshakes == []


class Authority:
    """Signs certificates for 127.0.0.1, kept in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "tests")])
        self.file = self._write("ca", self._certificate(self._name, self._key, is_authority=True))

    def issue(self, name: str) -> tuple[str, str]:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        pem = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        (self._folder / f"{name}.key").write_bytes(pem)
        return self._write(name, self._certificate(subject, key)), str(self._folder / f"{name}.key")

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *, is_authority: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
            )
        )
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, certificate: x509.Certificate) -> str:
        path = self._folder / f"{name}.pem"
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return str(path)


@pytest.mark.parametrize("through_proxy", [False, True])
@pytest.mark.requirement("TRN-4")
async def test_a_client_certificate_is_sent_to_a_server_that_requires_it(tmp_path: Path, through_proxy: bool):
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.file)
    context.load_cert_chain(*authority.issue("server"))
    context.verify_mode = ssl.CERT_REQUIRED
    certificate, key = authority.issue("client")
    door, proxy = Door(), Proxy()
    async with door.serving(context), proxy.serving():
        network = Network(
            f"wss://127.0.0.1:{door.port}/ws",
            proxy=f"http://127.0.0.1:{proxy.port}" if through_proxy else None,
            ca_file=authority.file,
            cert_file=certificate,
            key_file=key,
        )
        transport, sink = WebSocketTransport("box", network, limit_bytes=LIMIT), RecordingSink()
        await transport.open(sink)
        transport.send(b"{}")
        await sink.until(lambda: sink.messages)
        await transport.close()

    assert len(proxy.heads) == through_proxy


async def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path):
    authority = Authority(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*authority.issue("server"))
    door = Door()
    async with door.serving(context):
        network = Network(f"wss://127.0.0.1:{door.port}/ws")
        with pytest.raises(Unreachable, match="certificate is not trusted"):
            await WebSocketTransport("box", network, limit_bytes=LIMIT).open(RecordingSink())

    assert door.handshakes == []
