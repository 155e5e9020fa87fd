"""A command that says who asks, seen from the server: on every leg, and again after a 401."""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.auth import headers_helper as helper
from dragoman.errors import HttpError, SignInNeeded
from tests.integration.waiting import until
from tests.servers import stdio_server
from tests.servers.web import Answer, Ask, Site, answers, http_sse, streamable, websocket

pytestmark = [pytest.mark.requirement("AUT-9"), pytest.mark.slow]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
LEGS = {
    "http": lambda **more: streamable(revisions=(LEGACY,), **more),
    "http, modern": lambda **more: streamable(revisions=(MODERN,), **more),
    "sse": http_sse,
    "ws": websocket,
    "http, older": lambda **more: http_sse(path="/mcp", **more),
}
"""Every way to a remote server; the last is found by falling back to the older transport."""


class Tokens:
    """A helper's command that prints the token in a file, and notes that it ran."""

    def __init__(self, folder: Path, *tokens: str, seconds: float = 0) -> None:
        self._folder = folder
        (folder / "tokens").write_text("".join(f"{token}\n" for token in tokens))
        (folder / "helper").write_text(
            f"cd {shlex.quote(str(folder))}\n"
            "echo run >> runs\n"
            f"sleep {seconds}\n"
            'line=$(sed -n "$(wc -l < runs | tr -d " ")p" tokens)\n'
            'printf \'{"Authorization": "Bearer %s"}\' "${line:-$(tail -n 1 tokens)}"\n'
        )
        self.command = f"sh {shlex.quote(str(folder / 'helper'))}"

    @property
    def runs(self) -> int:
        runs = self._folder / "runs"
        return len(runs.read_text().splitlines()) if runs.exists() else 0


def admits(*tokens: str) -> Answer:
    async def answer(ask: Ask) -> Any:
        if ask.headers.get("Authorization") in [f"Bearer {token}" for token in tokens]:
            return None
        return await answers.challenge()(ask)

    return answer


@asynccontextmanager
async def host_of(leg: str, server: Site, command: str, **fields: Any) -> AsyncIterator[Host]:
    settings: Mapping[str, int] = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0, **fields.pop("settings", {})}
    entry = {"type": leg.partition(",")[0], "url": server.url, "headersHelper": command, **fields}
    async with Host({"x": entry}, permission_mode="bypassPermissions", settings=settings) as host:
        await host.ready(timeout=20)
        yield host


async def works(host: Host) -> None:
    view = host.servers["x"]
    assert view.status == "connected", view.reason
    assert (await host.call("mcp__x__echo", {"text": "through"})).text == "through"


def tokens_of(server: Site) -> list[str]:
    return [ask.headers.get("Authorization", "nothing").removeprefix("Bearer ") for ask in server.asks]


@pytest.mark.parametrize("leg", LEGS)
async def test_printed_headers_are_sent_with_every_request_and_replace_the_entrys(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "from-the-helper")
    static = {"authorization": "Bearer from-the-entry", "X-Other": "kept"}
    async with LEGS[leg]() as server:
        async with host_of(leg, server, tokens.command, headers=static) as host:
            await works(host)
            if leg == "http":
                await server.wait_for("GET")
            assert host.servers["x"].problems == ()
        assert set(tokens_of(server)) == {"from-the-helper"}
        assert all(len(ask.headers.getall("Authorization")) == 1 for ask in server.asks)
        assert {ask.headers.get("X-Other") for ask in server.asks} == {"kept"}
        if leg == "http":
            assert len(server.asked("DELETE")) == 1, "the last leg of all"
    assert tokens.runs == (2 if leg == "http, older" else 1), "once for each connection"


@pytest.mark.parametrize("leg", LEGS)
async def test_after_a_401_at_the_handshake_the_helper_runs_once_more(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "stale", "fresh")
    async with LEGS[leg](on={"*": admits("fresh")}) as server:
        async with host_of(leg, server, tokens.command) as host:
            await works(host)
        assert tokens_of(server).count("stale") == 1
        assert tokens.runs == (3 if leg == "http, older" else 2)


@pytest.mark.parametrize("leg", LEGS)
async def test_a_token_refused_twice_needs_authentication_and_the_helper_stops(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "s3cret-stale")
    async with LEGS[leg](on={"*": admits("fresh")}) as server:
        async with host_of(leg, server, tokens.command, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 3}) as host:
            view = host.servers["x"]
            assert view.status == "needs-auth"
            assert isinstance(view.error, SignInNeeded)
            assert "s3cret" not in f"{view} {view.error} {view.error.hint}"
        assert (len(server.asks), tokens.runs) == (2, 2)


@pytest.mark.parametrize("leg", ["http", "http, modern", "sse"])
async def test_a_token_that_expires_while_connected_is_renewed_within_the_call(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "first", "second")
    async with LEGS[leg]() as server:
        async with host_of(leg, server, tokens.command) as host:
            await works(host)
            server.on["tools/call"] = admits("second")
            assert (await host.call("mcp__x__ledger", {"key": "k"})).text == "1"
            assert server.ledger.counts["k"] == 1
            await works(host)
        assert tokens.runs == 2


@pytest.mark.parametrize("leg", ["http", "http, modern", "sse"])
async def test_concurrent_calls_with_a_401_share_one_run_of_the_helper(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "first", "second", seconds=0.1)
    async with LEGS[leg]() as server:
        async with host_of(leg, server, tokens.command) as host:
            await works(host)
            server.on["tools/call"] = admits("second")
            said = [str(number) for number in range(40)]
            found = await asyncio.gather(*(host.call("mcp__x__echo", {"text": text}) for text in said))
            assert [outcome.text for outcome in found] == said
        assert tokens.runs == 2


async def test_a_401_for_the_get_stream_of_a_legacy_server_runs_the_helper_too(tmp_path: Path):
    tokens = Tokens(tmp_path, "first", "second")
    async with streamable(revisions=(LEGACY,), on={"GET": admits("second")}) as server:
        async with host_of("http", server, tokens.command) as host:
            await works(host)
            streams = await server.wait_for("GET", 2)
        assert [ask.headers["Authorization"] for ask in streams] == ["Bearer first", "Bearer second"]


async def test_each_connection_runs_the_helper_again(tmp_path: Path):
    tokens = Tokens(tmp_path, "first", "second")
    async with streamable(revisions=(MODERN,)) as server:
        async with host_of("http", server, tokens.command) as host:
            await works(host)
            await host.reconnect("x")
            await works(host)
        assert list(dict.fromkeys(tokens_of(server))) == ["first", "second"]


async def test_a_slow_helper_does_not_cause_a_fallback_to_the_legacy_era(tmp_path: Path):
    """It takes longer than the probe that finds out which revision a server speaks."""
    tokens = Tokens(tmp_path, "token", seconds=0.5)
    settings = {"DRAGOMAN_PROBE_TIMEOUT_MS": 250}
    async with streamable() as server:
        async with host_of("http", server, tokens.command, settings=settings) as host:
            await works(host)
            assert host.servers["x"].protocol_version == MODERN
        assert tokens.runs == 1


@pytest.mark.parametrize("leg", LEGS)
@pytest.mark.parametrize(
    ("command", "cause"),
    [
        ("echo s3cret; echo s3cret >&2; exit 3", "its headersHelper ended with exit code 3"),
        ("echo s3cret", "its headersHelper did not print one JSON object of texts"),
        ("""printf '{"A": "s3cret\\\\r\\\\nB: c"}'""", "line break"),
        ("""printf '{"Host": "s3cret.example"}'""", "the header host, which a helper must not set"),
        ("sleep 60", "its headersHelper did not end within 0.3 s"),
    ],
    ids=["exit 3", "no JSON", "two lines", "host", "hangs"],
)
async def test_a_failed_helper_is_reported_with_cause_and_next_step_and_nothing_is_sent(
    monkeypatch: pytest.MonkeyPatch, leg: str, command: str, cause: str
):
    monkeypatch.setattr(helper, "LIMIT_SECONDS", 0.3 if "sleep" in command else 10)
    async with LEGS[leg]() as server:
        async with host_of(leg, server, command, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 3}) as host:
            view = host.servers["x"]
            assert view.status == "needs-auth", view.reason
            assert (view.reason or "").startswith("x: connect failed: its headersHelper")
            assert cause in (view.reason or "")
            assert isinstance(view.error, SignInNeeded)
            assert "by hand" in (view.error.hint or "")
            assert "s3cret" not in f"{view} {view.error!r} {vars(view.error)}"
        assert server.asks == []


async def test_a_helper_that_fails_during_a_call_fails_the_call_and_is_reported(tmp_path: Path):
    command = """test -e there && exit 5; touch there; printf '{"Authorization": "Bearer first"}'"""
    async with streamable(revisions=(MODERN,)) as server:
        async with host_of("http", server, command, cwd=str(tmp_path)) as host:
            await works(host)
            server.on["tools/call"] = admits("second")
            with pytest.raises(HttpError, match="its headersHelper ended with exit code 5") as caught:
                await host.call("mcp__x__ledger", {"key": "k"})
            assert (caught.value.status, caught.value.may_have_run) == (401, False)
            await until(lambda: host.servers["x"].status == "needs-auth")
        assert not server.ledger.counts


@pytest.mark.requirement("AUT-11")
@pytest.mark.parametrize("leg", ["http", "http, modern", "sse"])
async def test_a_token_repeated_in_an_error_of_the_server_is_not_shown(tmp_path: Path, leg: str):
    tokens = Tokens(tmp_path, "s3cret-t0ken-value")
    echo = answers.status(418, "no: Bearer s3cret-t0ken-value", headers={"Content-Type": "text/plain"})
    async with LEGS[leg]() as server:
        async with host_of(leg, server, tokens.command) as host:
            server.on["tools/call"] = echo
            with pytest.raises(HttpError) as caught:
                await host.call("mcp__x__echo", {"text": "x"})
        assert "•••" in str(caught.value)
        assert "t0ken" not in f"{caught.value} {vars(caught.value)}"


@pytest.mark.requirement("AUT-11")
async def test_a_token_repeated_in_the_handshake_is_not_shown(tmp_path: Path):
    tokens = Tokens(tmp_path, "s3cret-t0ken-value")
    echo = answers.status(418, "no: Bearer s3cret-t0ken-value", headers={"Content-Type": "text/plain"})
    async with websocket(on={"*": echo}) as server, host_of("ws", server, tokens.command) as host:
        assert "•••" in (host.servers["x"].reason or "")
        assert "t0ken" not in f"{host.servers['x']} {host.servers['x'].error}"


async def test_with_a_helper_no_redirect_is_followed(tmp_path: Path):
    tokens = Tokens(tmp_path, "token")
    async with streamable() as elsewhere:
        moved = answers.redirect(308, elsewhere.url)
        async with streamable(on={"*": moved}) as server, host_of("http", server, tokens.command) as host:
            assert host.servers["x"].status == "failed"
        assert elsewhere.asks == []


async def test_the_helper_runs_in_the_home_folder_unless_the_entry_names_another(tmp_path: Path, home: Path):
    command = """printf '{"X-Folder": "%s"}' "$(pwd -P)\""""
    (home / "sub").mkdir()
    async with streamable(revisions=(MODERN,)) as server:
        for cwd, folder in ((None, home), (str(tmp_path), tmp_path), ("sub", home / "sub")):
            fields = {} if cwd is None else {"cwd": cwd}
            async with host_of("http", server, command, **fields) as host:
                await works(host)
            assert server.asks[-1].headers["X-Folder"] == str(folder.resolve())


async def test_the_helper_gets_name_and_url_of_its_server():
    command = """printf '{"X-A": "%s %s", "X-B": "%s %s"}' "$DRAGOMAN_SERVER_NAME" "$DRAGOMAN_SERVER_URL" """
    command += '"$CLAUDE_CODE_MCP_SERVER_NAME" "$CLAUDE_CODE_MCP_SERVER_URL"'
    async with streamable(revisions=(MODERN,)) as server, host_of("http", server, command) as host:
        await works(host)
        assert server.asks[0].headers["X-A"] == server.asks[0].headers["X-B"] == f"x {server.url}"


async def test_closing_the_host_ends_a_running_helper(tmp_path: Path):
    command = "echo $$ > started; exec sleep 60"
    async with streamable() as server:
        entry = {"url": server.url, "headersHelper": command, "cwd": str(tmp_path)}
        async with Host({"x": entry}):
            await until(lambda: (tmp_path / "started").exists() and (tmp_path / "started").read_text())
            pid = int((tmp_path / "started").read_text())
        await until(lambda: not Path(f"/proc/{pid}").exists(), 5)
        assert server.asks == []


@pytest.mark.parametrize("kind", ["stdio", "sse-ide"])
async def test_a_helper_on_a_transport_without_headers_is_reported_and_not_run(tmp_path: Path, kind: str):
    entry: dict[str, Any] = {"headersHelper": f"touch {shlex.quote(str(tmp_path / 'ran'))}"}
    entry |= stdio_server("well_behaved.py") if kind == "stdio" else {"type": kind}
    async with Host({"x": entry}, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 0}) as host:
        await host.ready(timeout=20)
        assert f"headersHelper is not used by servers of type {kind}" in host.servers["x"].problems
    assert not (tmp_path / "ran").exists()


async def test_all_allowed_headers_of_a_helper_are_sent_as_printed():
    given = {"X-Api-Key": "a b", "Cookie": "one=1; two=2", "X-Name": "J\u00f6rg", "X-Long": "v" * 6000}
    command = f"printf %s {shlex.quote(json.dumps(given))}"
    async with streamable(revisions=(MODERN,)) as server, host_of("http", server, command) as host:
        await works(host)
        assert {name: server.asks[-1].headers[name] for name in given} == given


@pytest.mark.requirement("AUT-11")
async def test_a_token_repeated_in_a_result_is_redacted(tmp_path: Path):
    token = "tok-4f9a1c7720aa51e3"
    helper = tmp_path / "token"
    helper.write_text(f'#!/bin/sh\necho \'{{"Authorization": "Bearer {token}"}}\'\n')
    helper.chmod(0o700)
    async with streamable() as server:
        server.in_memory.add_tool("leak", lambda given, context: f"you are {token}")
        entry = {"type": "http", "url": server.url, "headersHelper": str(helper)}
        async with Host({"server": entry}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            assert (await host.call("mcp__server__leak", {})).text == "you are [secret]"
