"""Everything an entry can say about a remote server, seen from the server: network, editors, connectors."""

import asyncio
import base64
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Challenge, Host
from dragoman.errors import CallTimeout, MalformedReply, RemoteError, SignInNeeded, UnknownTool, Unreachable
from dragoman.interaction import FormAnswer, FormElicitation, PermissionAnswer
from tests.certificates import Authority, secured
from tests.integration.embedding import Embedding
from tests.integration.waiting import until
from tests.integration.workshop import our_server
from tests.servers.web import Ask, Site, answers, http_sse, streamable, websocket
from tests.servers.web.given_answers import replace_results
from tests.tunnel import Tunnel

LEGACY, MODERN = "2025-11-25", "2026-07-28"
ONCE = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}
LEGS = {
    "http": lambda: streamable(revisions=(LEGACY,)),
    "http, modern": lambda: streamable(revisions=(MODERN,)),
    "sse": http_sse,
    "ws": websocket,
    "http, older": lambda: http_sse(path="/mcp"),
}
"""Every way to a remote server; the last is found by falling back to the older transport."""


def type_of(leg: str) -> str:
    return leg.partition(",")[0]


@asynccontextmanager
async def host_of(entry: Mapping[str, Any], **options: Any) -> AsyncIterator[Host]:
    options.setdefault("permission_mode", "bypassPermissions")
    options.setdefault("settings", ONCE)
    async with Host({"x": entry}, **options) as host:
        await host.ready(timeout=20)
        yield host


async def works(host: Host) -> None:
    view = host.servers["x"]
    assert view.status == "connected", view.reason
    assert (await host.call("mcp__x__echo", {"text": "through"})).text == "through"


async def every_leg(leg: str, server: Site) -> None:
    """Until the stream on which a legacy server speaks by itself is open as well."""
    if leg == "http":
        await server.wait_for("GET")


# Proxies and certificates.


@pytest.mark.requirement("TRN-4", "TRN-2", "TRN-3")
@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize("said_in", ["entry", "environment"])
async def test_proxy_ca_and_client_certificate_apply_to_every_request(tmp_path, monkeypatch, leg, said_in):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    server = secured(LEGS[leg](), authority.serving(wants_ours=True))
    async with server, Tunnel() as proxy:
        entry: dict[str, Any] = {"type": type_of(leg), "url": server.url}
        if said_in == "entry":
            entry |= {"proxy": proxy.url, "tls": {"ca": authority.file, "cert": certificate, "key": key}}
        else:
            monkeypatch.setenv("HTTPS_PROXY", proxy.url)
            monkeypatch.setenv("DRAGOMAN_CA_FILE", authority.file)
            monkeypatch.setenv("DRAGOMAN_CLIENT_CERT", certificate)
            monkeypatch.setenv("DRAGOMAN_CLIENT_KEY", key)
        async with host_of(entry) as host:
            await works(host)
            await every_leg(leg, server)
        assert server.connections == len(proxy.tunnels) > 0, "nothing went past the proxy"
        assert set(proxy.tunnels) == {f"127.0.0.1:{server.port}"}
        assert proxy.plain == []
        assert not any(b"/mcp" in head or b"/sse" in head for head in proxy.heads)
        if leg == "http":
            assert len(server.asked("DELETE")) == 1, "the last leg of all"


@pytest.mark.requirement("TRN-4", "TRN-2", "TRN-3")
@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize("lacking", ["authority", "certificate"])
async def test_without_the_ca_or_the_client_certificate_there_is_no_connection(tmp_path, leg, lacking):
    authority = Authority(tmp_path)
    certificate, key = authority.issue("client")
    server = secured(LEGS[leg](), authority.serving(wants_ours=True))
    tls = {"cert": certificate, "key": key} if lacking == "authority" else {"ca": authority.file}
    async with (
        server,
        host_of({"type": type_of(leg), "url": server.url, "tls": tls}) as host,
    ):
        assert isinstance(host.servers["x"].error, Unreachable)
        assert server.asks == []


@pytest.mark.parametrize("said", [{"ca": "/nonexistent"}, {"cert": "/nonexistent", "key": "/nonexistent"}])
@pytest.mark.parametrize("leg", ["http", "sse", "ws"])
async def test_missing_certificate_files_are_named_and_no_connection_is_tried(tmp_path, leg, said):
    server = secured(LEGS[leg](), Authority(tmp_path).serving())
    async with server, host_of({"type": leg, "url": server.url, "tls": said}) as host:
        error = host.servers["x"].error
        assert error is not None
        assert "/nonexistent" in f"{error} {error.hint}"
        assert server.connections == 0


@pytest.mark.parametrize("leg", ["http", "sse", "ws", "http, older"])
@pytest.mark.parametrize("spared", [False, True])
async def test_an_http_url_uses_the_proxy_unless_excluded(monkeypatch, leg, spared):
    async with LEGS[leg]() as server, Tunnel() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        if spared:
            monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.1")
        async with host_of({"type": type_of(leg), "url": server.url}) as host:
            await works(host)
            await every_leg(leg, server)
        assert proxy.connections == (0 if spared else server.connections)


@pytest.mark.parametrize("leg", ["http", "sse", "ws"])
async def test_the_entrys_proxy_takes_precedence_over_the_environments(monkeypatch, leg):
    async with LEGS[leg]() as server, Tunnel() as own, Tunnel() as other:
        monkeypatch.setenv("HTTP_PROXY", other.url)
        async with host_of({"type": leg, "url": server.url, "proxy": own.url}) as host:
            await works(host)
        assert own.connections > 0
        assert other.connections == 0


@pytest.mark.parametrize("leg", ["http", "sse", "ws"])
@pytest.mark.parametrize("proxy_is", ["gone", "refusing"])
async def test_a_proxy_that_cannot_be_used_is_named_without_its_password(tmp_path, leg, proxy_is):
    authority = Authority(tmp_path)
    server = secured(LEGS[leg](), authority.serving())
    async with server, Tunnel(refusing=b"HTTP/1.1 407 Who are you?\r\nContent-Length: 0\r\n\r\n") as proxy:
        port = 9 if proxy_is == "gone" else proxy.port
        entry = {"type": leg, "url": server.url, "proxy": f"http://me:s3cret@127.0.0.1:{port}"}
        async with host_of(entry) as host:
            error = host.servers["x"].error
            assert isinstance(error, Unreachable)
            assert "proxy" in f"{error} {error.hint}"
            assert "s3cret" not in f"{error} {error.hint} {host.servers['x']}"
        assert server.connections == 0, "nothing is tried without it"


async def test_a_password_in_the_proxy_url_is_sent_to_the_proxy_only(tmp_path):
    authority = Authority(tmp_path)
    server = secured(streamable(), authority.serving())
    async with server, Tunnel() as proxy:
        told = proxy.url.replace("://", "://me:s3cret@")
        async with host_of({"url": server.url, "proxy": told, "tls": {"ca": authority.file}}) as host:
            await works(host)
        expected = b"Proxy-Authorization: Basic " + base64.b64encode(b"me:s3cret")
        assert all(expected in head for head in proxy.heads)
        assert not any("Proxy-Authorization" in ask.headers for ask in server.asks)


# Editors.


def lock(home: Path, port: int, transport: str, **more: Any) -> None:
    folder = home / ".dragoman" / "ide"
    folder.mkdir(parents=True, mode=0o700)
    content = {
        "pid": os.getpid(),
        "workspaceFolders": [str(home / "work")],
        "ideName": "an editor",
        "transport": transport,
        "authToken": "t0ken",
        **more,
    }
    file = folder / f"{port}.lock"
    file.write_text(json.dumps(content))
    file.chmod(0o600)


def editor(kind: str) -> Any:
    """An editor's server, with tools for models and tools that drive the editor."""
    server = http_sse(path="/sse") if kind == "sse-ide" else websocket(path="/")
    for name in ("getDiagnostics", "executeCode", "openDiff", "close_tab"):
        server.in_memory.add_tool(name, lambda *_, name=name: f"{name} ran")
    return server


@pytest.mark.requirement("TRN-7")
@pytest.mark.parametrize("kind", ["sse-ide", "ws-ide"])
@pytest.mark.parametrize("header", [None, "X-Editor-Token"])
async def test_an_ide_is_found_by_its_lockfile_and_offers_only_tools_for_models(home, kind, header):
    async with editor(kind) as server:
        lock(home, server.port, kind.partition("-")[0])
        entry = {"type": kind, **({} if header is None else {"tokenHeader": header})}
        async with host_of(entry) as host:
            view = host.servers["x"]
            assert view.status == "connected", view.reason
            assert {tool.wire_name for tool in host.tools()} == {"getDiagnostics", "executeCode"}
            assert (await host.call("mcp__x__getDiagnostics")).text == "getDiagnostics ran"
            for hidden in ("openDiff", "close_tab", "echo"):
                outcome = await host.call(f"mcp__x__{hidden}", {})
                assert isinstance(outcome.error, UnknownTool)
        sent = server.messages if kind == "ws-ide" else [ask.message for ask in server.asks if ask.message]
        called = [message["params"]["name"] for message in sent if message.get("method") == "tools/call"]
        assert called == ["getDiagnostics"], "what is not offered does not reach the editor either"
        name = header or "X-Claude-Code-Ide-Authorization"
        assert {ask.headers.get(name) for ask in server.asks} == {"t0ken"}, "on every request"


@pytest.mark.requirement("TRN-7")
@pytest.mark.parametrize("kind", ["sse-ide", "ws-ide"])
async def test_an_ide_for_another_folder_or_a_missing_one_is_reported(home, kind):
    async with editor(kind) as server:
        lock(home, server.port, kind.partition("-")[0], workspaceFolders=["/somewhere/else"])
        async with host_of({"type": kind}) as host:
            error = host.servers["x"].error
            assert isinstance(error, Unreachable)
            assert "editor" in str(error)
            assert "t0ken" not in repr(host.servers["x"])
        assert server.asks == []


@pytest.mark.requirement("TRN-7")
@pytest.mark.parametrize("kind", ["sse-ide", "ws-ide"])
async def test_a_proxy_for_all_urls_never_gets_an_ides_token(home, monkeypatch, kind):
    async with editor(kind) as server, Tunnel() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        lock(home, server.port, kind.partition("-")[0])
        async with host_of({"type": kind}) as host:
            assert host.servers["x"].status == "connected"
        assert proxy.heads == []


# Embedding programs and connectors.


@pytest.mark.requirement("TRN-6")
async def test_a_server_of_the_embedding_program_is_reached_by_control_messages():
    async with host_of({"type": "sdk"}, control=Embedding(x=our_server())) as host:
        assert host.servers["x"].status == "connected", host.servers["x"].reason
        assert (await host.call("mcp__x__add", {"a": 1, "b": 2})).text == "3"


@pytest.mark.requirement("TRN-6")
async def test_without_an_embedding_program_an_sdk_server_states_what_is_missing():
    async with host_of({"type": "sdk"}) as host:
        error = host.servers["x"].error
        assert error is not None
        assert "control=" in (error.hint or "")


class Bearers:
    """Gives out one token after the other; a new one only when the last was refused."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.renewals = 0

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {self._tokens[0]}"}

    async def renew(self, challenge: Challenge) -> bool:
        self.renewals += 1
        if len(self._tokens) > 1:
            self._tokens.pop(0)
        return True


def admits(token: str) -> Any:
    async def answer(ask: Ask) -> Any:
        if ask.headers.get("Authorization") == f"Bearer {token}":
            return None
        return await answers.challenge()(ask)

    return answer


@pytest.mark.requirement("TRN-8")
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_connector_gets_the_token_and_a_401_renews_it_once(era):
    bearers = Bearers("stale", "fresh")
    async with streamable(revisions=(era,), on={"*": admits("fresh")}) as server:
        entry = {"type": "claudeai-proxy", "url": server.url, "protocol": era}
        async with host_of(entry, bearer=lambda _: bearers, bearer_origins=[server.url]) as host:
            await works(host)
            assert bearers.renewals == 1
            refused = [ask for ask in server.asks if ask.headers["Authorization"] == "Bearer stale"]
            assert len(refused) == 1
            names = {ask.headers.get("X-Mcp-Client-Session-Id") for ask in server.asks}
            assert len(names) == 1, "the same on every request"
            assert names.pop()
            await host.reconnect("x")
            sessions = {ask.headers["X-Mcp-Client-Session-Id"] for ask in server.asks}
            assert sessions == {host._access.session_id}, "another connection of the same host"
        every = {ask.method for ask in server.asks}
        assert every >= ({"POST", "GET", "DELETE"} if era == LEGACY else {"POST"})
        assert all(ask.headers.get("X-Mcp-Client-Session-Id") for ask in server.asks)


@pytest.mark.requirement("TRN-2", "TRN-3")
@pytest.mark.parametrize("leg", ["http", "http, modern", "sse", "http, older"])
async def test_every_request_has_the_hosts_session_id(leg):
    named: list[set[str | None]] = []
    async with LEGS[leg]() as server:
        for _ in range(2):
            seen = len(server.asks)
            async with host_of({"type": type_of(leg), "url": server.url}) as host:
                await works(host)
                await host.reconnect("x")
            sessions = {ask.headers.get("X-Mcp-Client-Session-Id") for ask in server.asks[seen:]}
            assert sessions == {host._access.session_id}
            named.append(sessions)
        assert named[0] != named[1], "another host, another session"
        seen = len(server.asks)
        entry = {"type": type_of(leg), "url": server.url, "headers": {"x-mcp-client-session-id": "mine"}}
        async with host_of(entry) as host:
            await works(host)
        assert {ask.headers.get("X-Mcp-Client-Session-Id") for ask in server.asks[seen:]} == {"mine"}


@pytest.mark.requirement("TRN-8")
async def test_a_connector_whose_token_is_refused_twice_needs_authentication_and_is_not_retried():
    bearers = Bearers("stale")
    async with streamable(on={"*": admits("fresh")}) as server:
        entry = {"type": "claudeai-proxy", "url": server.url}
        async with host_of(entry, bearer=lambda _: bearers, bearer_origins=[server.url]) as host:
            view = host.servers["x"]
            assert view.status == "needs-auth"
            assert isinstance(view.error, SignInNeeded)
            assert (len(server.asks), bearers.renewals) == (2, 1)
            assert "stale" not in f"{view}"


@pytest.mark.requirement("TRN-8")
async def test_a_token_that_expires_while_connected_is_renewed_within_the_call():
    bearers = Bearers("first", "second")
    async with streamable(revisions=(MODERN,), on={"*": admits("first")}) as server:
        entry = {"type": "claudeai-proxy", "url": server.url}
        async with host_of(entry, bearer=lambda _: bearers, bearer_origins=[server.url]) as host:
            await works(host)
            server.on["*"] = admits("second")
            assert (await host.call("mcp__x__ledger", {"key": "k"})).text == "1"
            assert (bearers.renewals, server.ledger.counts["k"]) == (1, 1)


# What the modern era repeats as headers.


@pytest.mark.requirement("TRN-2")
async def test_annotated_arguments_are_sent_as_headers_too():
    async with streamable(revisions=(MODERN,)) as server, host_of({"url": server.url}) as host:
        given = {"region": " Zürich\n", "shard": 7, "dry": False, "unrouted": "not this one"}
        outcome = await host.call("mcp__x__route", given)
        assert json.loads(outcome.text) == given
        (ask,) = server.asked("tools/call")
        mirrored = {name: value for name, value in ask.headers.items() if name.startswith("Mcp-Param-")}
        escaped = base64.b64encode(" Zürich\n".encode()).decode()
        assert mirrored == {
            "Mcp-Param-Region": f"=?base64?{escaped}?=",
            "Mcp-Param-Shard": "7",
            "Mcp-Param-Dry-Run": "false",
        }
        assert (ask.headers["Mcp-Method"], ask.headers["Mcp-Name"]) == ("tools/call", "route")
        assert server.faults == []


@pytest.mark.requirement("TRN-2")
async def test_a_legacy_server_gets_no_such_headers():
    async with streamable(revisions=(LEGACY,)) as server, host_of({"url": server.url}) as host:
        await host.call("mcp__x__route", {"region": "here"})
        (ask,) = server.asked("tools/call")
        assert not [name for name in ask.headers if name.lower().startswith(("mcp-param", "mcp-m", "mcp-n"))]


@pytest.mark.requirement("TRN-2")
async def test_a_tool_whose_header_changed_is_listed_again_and_its_call_repeated_once():
    """The server moved the mark to another argument without a word: it answers -32020 and runs nothing."""
    async with streamable(revisions=(MODERN,)) as server, host_of({"url": server.url}) as host:
        lists = len(server.asked("tools/list"))
        marked = {"key": {"type": "string", "x-mcp-header": "Key"}}
        server.in_memory.add_tool(
            "ledger", lambda given, _: str(server.ledger.enter(given["key"])), properties=marked
        )
        assert (await host.call("mcp__x__ledger", {"key": "k"})).text == "1"
        assert server.ledger.counts["k"] == 1
        assert len(server.asked("tools/list")) == lists + 1
        first, second = server.asked("tools/call")
        assert "Mcp-Param-Key" not in first.headers
        assert second.headers["Mcp-Param-Key"] == "k"


@pytest.mark.requirement("TRN-2")
async def test_a_header_mismatch_is_retried_once():
    on = {"tools/call": answers.error(-32020, "the headers differ", status=400)}
    async with streamable(revisions=(MODERN,), on=on) as server, host_of({"url": server.url}) as host:
        outcome = await host.call("mcp__x__ledger", {"key": "k"})
        assert isinstance(outcome.error, RemoteError)
        assert outcome.error.remote_code == -32020
        assert len(server.asked("tools/call")) == 2


@pytest.mark.requirement("TRN-2")
async def test_a_tool_with_an_invalid_annotation_is_left_out_alone():
    async with streamable(revisions=(MODERN,)) as server:
        server.in_memory.add_tool(
            "bad", lambda *_: "", properties={"a": {"type": "number", "x-mcp-header": "A"}}
        )
        async with host_of({"url": server.url}) as host:
            names = {tool.wire_name for tool in host.tools()}
            assert "bad" not in names
            assert names >= {"echo", "route", "ledger"}
            (problem,) = host.servers["x"].problems
            assert "'bad' is left out" in problem
            await works(host)


# Questions in the middle of a call.


class Person:
    """Allows everything, and fills forms from a script."""

    def __init__(self, *forms: FormAnswer) -> None:
        self._forms = list(forms)
        self.asked: list[FormElicitation] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question)
        return self._forms.pop(0) if len(self._forms) > 1 else self._forms[0]


SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer", "default": 3}},
}


def asking(rounds: int) -> Any:
    """Asks in so many rounds, hands out a state each time, and then tells what it was given."""

    def call(params: dict[str, Any]) -> dict[str, Any]:
        state = json.loads(params.get("requestState") or "[]")
        if "inputResponses" in params:
            state.append(params["inputResponses"]["who"])
        if len(state) < rounds:
            question = {"message": f"round {len(state)} \x1b[2J", "requestedSchema": SCHEMA, "mode": "form"}
            return {
                "resultType": "input_required",
                "inputRequests": {"who": {"method": "elicitation/create", "params": question}},
                "requestState": json.dumps(state),
            }
        return {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(state)}]}

    return call


@pytest.mark.parametrize("kind", ["http", "ws"])
@pytest.mark.parametrize("rounds", [1, 3])
async def test_a_call_with_input_rounds_is_completed(kind, rounds):
    person = Person(FormAnswer("accept", {"name": "Ada"}))
    async with {"http": streamable, "ws": websocket}[kind](revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": asking(rounds)})
        async with host_of({"type": kind, "url": server.url}, interaction=person) as host:
            outcome = await host.call("mcp__x__ledger", {"key": "k"})
            answer = {"action": "accept", "content": {"name": "Ada", "size": 3}}
            assert json.loads(outcome.text) == [answer] * rounds
            assert [question.server for question in person.asked] == ["x"] * rounds
            assert not any("\x1b" in question.message for question in person.asked)
        if kind == "http":
            asks = server.asked("tools/call")
            assert {ask.params["arguments"]["key"] for ask in asks} == {"k"}, "the arguments each time"
            assert len({ask.id for ask in asks}) == rounds + 1, "each round is a request of its own"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_form_is_sent_without_values(action):
    person = Person(FormAnswer(action, {"name": "Ada"}))
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": asking(1)})
        async with host_of({"url": server.url}, interaction=person) as host:
            outcome = await host.call("mcp__x__echo", {"text": "?"})
            assert json.loads(outcome.text) == [{"action": action}]


async def test_the_number_of_input_rounds_is_limited():
    person = Person(FormAnswer("accept", {}))
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": asking(1_000)})
        async with host_of({"url": server.url}, interaction=person) as host:
            with pytest.raises(MalformedReply, match="rounds"):
                await host.call("mcp__x__echo", {"text": "?"})
            assert len(person.asked) <= 12


class Thinker(Person):
    """Never comes to an answer."""

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.asked.append(question)
        await asyncio.Event().wait()
        raise AssertionError


async def test_a_call_can_be_cancelled_while_a_person_is_asked():
    person = Thinker()
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": asking(1)})
        async with host_of({"url": server.url}, interaction=person) as host:
            calling = asyncio.create_task(host.call("mcp__x__echo", {"text": "?"}))
            await until(lambda: person.asked)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            assert len(server.asked("tools/call")) == 1


async def test_the_time_limit_of_a_call_applies_while_a_person_is_asked():
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/call": asking(1)})
        async with host_of({"url": server.url}, interaction=Thinker()) as host:
            with pytest.raises(CallTimeout):
                async with asyncio.timeout(0.3 + 2):
                    await host.call("mcp__x__echo", {"text": "?"}, timeout_seconds=0.3)
