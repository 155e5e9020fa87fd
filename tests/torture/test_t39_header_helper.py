"""T39: A headers helper runs only after approval, within its limits, and without the host's credentials."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.auth import headers_helper as helper
from dragoman.credentials import Challenge
from dragoman.errors import NotConnected, SignInNeeded
from dragoman.transports.credentials import Signed, Signer
from tests.e2e.forked import run
from tests.servers.web import Ask, answers, streamable
from tests.torture import projects
from tests.torture.bystander_host import until
from tests.torture.child_programs import alive
from tests.torture.network import LEGS, MODERN, Way
from tests.torture.projects import Canary, Listener, servers, write

pytestmark = pytest.mark.requirement("AUT-9")

SECRET = "s3cr3t-canary-9f2e"
GOOD = """printf '{"Authorization": "Bearer good"}'"""


def prints(document: object) -> str:
    return f"printf %s {shlex.quote(json.dumps(document))}"


# --- approval ---


def in_project(home: Path, **entry: Any) -> Path:
    return write(home / "work" / ".mcp.json", servers(x={"type": "http", **entry}))


@pytest.mark.parametrize("scope", ["project", "local"])
@pytest.mark.parametrize("kind", ["http", "sse", "ws"])
async def test_t39_a_projects_headers_helper_does_not_run_before_approval(home: Path, scope: str, kind: str):
    canary = Canary(home / "canary")
    with Listener() as listener:
        url = f"{'ws' if kind == 'ws' else 'http'}://127.0.0.1:{listener.port}/"
        entry = {"type": kind, "url": url, "headersHelper": canary.script("ran")}
        file = {"project": ".mcp.json", "local": ".dragoman/settings.local.json"}[scope]
        write(home / "work" / file, servers(x=entry))
        async with Host.configured(permission_mode="bypassPermissions", watch=True) as host:
            views = await host.ready(timeout=30)
            assert views["x"].status == "pending"
            await host.reload()
            with pytest.raises(NotConnected, match="needs approval"):
                await host.call("mcp__x__echo", {})
        for words in (("mcp", "list"), ("mcp", "get", "x"), ("tools",), ("call", "mcp__x__echo")):
            run(*words)
        assert listener.connections == 0
    assert canary.started == set()


async def test_t39_it_runs_after_approval_and_is_pending_again_after_a_change(home: Path):
    canary = Canary(home / "canary")
    async with streamable(revisions=(MODERN,)) as server:
        file = in_project(home, url=server.url, headersHelper=f"{canary.script('first')}; {GOOD}")
        projects.approve(file, "x")
        async with Host.configured() as host:
            await host.ready(timeout=30)
            assert host.servers["x"].status == "connected"
            assert canary.started == {"first"}
            in_project(home, url=server.url, headersHelper=f"{canary.script('second')}; {GOOD}")
            await host.reload()
            await host.ready(timeout=30)
            assert host.servers["x"].status == "pending"
    assert canary.started == {"first"}


async def test_t39_a_relative_command_is_not_looked_up_in_the_working_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    """`./token` of an approved project must not become `./token` of a repository inside it."""
    canary = Canary(home / "canary")
    inner = home / "work" / "inner"
    inner.mkdir()
    (inner / "token").write_text(f"#!/bin/sh\n{canary.script('theirs')}\n")
    (inner / "token").chmod(0o755)
    monkeypatch.chdir(inner)
    async with streamable() as server:
        projects.approve(in_project(home, url=server.url, headersHelper="./token"), "x")
        projects.user(home, servers(mine={"url": f"{server.url}?mine", "headersHelper": "./token"}))
        async with Host.configured(cwd=inner) as host:
            views = await host.ready(timeout=30)
            assert {view.status for view in views.values()} == {"needs-auth"}
        assert server.asks == []
    assert canary.started == set()


# --- environment of the helper ---

CREDENTIALS = {
    "ANTHROPIC_API_KEY": SECRET,
    "OPENAI_API_KEY": SECRET,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "GITHUB_TOKEN": SECRET,
    "DRAGOMAN_CLIENT_KEY": SECRET,
    "NPM_CONFIG_AUTH": SECRET,
    "DATABASE_URL": f"postgres://me:{SECRET}@db/",
    "SSH_AUTH_SOCK": f"/tmp/{SECRET}",
    "BASH_FUNC_ls%%": f"() {{ echo {SECRET}; }}",
    "LC_ALL": f"() {{ echo {SECRET}; }}",
}


@pytest.mark.requirement("AUT-11")
@pytest.mark.parametrize("scope", ["project", "user"])
async def test_t39_its_environment_has_no_credential_of_the_host(
    home: Path, monkeypatch: pytest.MonkeyPatch, scope: str
):
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    seen = home / "seen"
    command = f"env > {shlex.quote(str(seen))}; {GOOD}"
    async with streamable(revisions=(MODERN,)) as server:
        entry = {"url": server.url, "headersHelper": command, "env": {"OWN": "given"}}
        if scope == "project":
            projects.approve(in_project(home, **entry), "x")
        else:
            projects.user(home, servers(x=entry))
        async with Host.configured() as host:
            await host.ready(timeout=30)
            assert host.servers["x"].status == "connected", host.servers["x"].reason
    text = seen.read_text()
    assert SECRET not in text
    assert "OWN=given" in text.splitlines(), "what its entry names it does get"
    assert f"DRAGOMAN_SERVER_URL={server.url}" in text.splitlines()


async def test_t39_its_output_is_not_visible_to_other_servers_or_in_events(bystander_host, home: Path):
    async with streamable(revisions=(MODERN,)) as server:
        entry = {"url": server.url, "headersHelper": prints({"Authorization": SECRET})}
        async with bystander_host(entry) as a:
            pid = a.host.servers["bystander"].pid
            assert SECRET not in Path(f"/proc/{pid}/environ").read_text()
            assert SECRET not in repr(list(a.events))


# --- output of the helper ---

BAD: dict[str, str] = {
    "a line break": prints({"X": f"{SECRET}\r\nInjected: 1"}),
    "a line feed": prints({"X": f"{SECRET}\n"}),
    "a line break in a name": prints({"X: 1\r\nInjected": SECRET}),
    "NUL": prints({"X": f"{SECRET}\0"}),
    "an escape": prints({"X": f"\x1b]0;{SECRET}\x07"}),
    "1 MB of value": f"printf '{{\"X\": \"{SECRET}'; head -c 1048576 /dev/zero | tr '\\0' a; printf '\"}}'",
    "without end": f"while :; do echo {SECRET}; done",
    "no JSON": f"echo {SECRET}",
    "a list": prints([SECRET]),
    "a number": prints({"X": 5, "Y": SECRET}),
    "nested": prints({"headers": {"X": SECRET}}),
    "nested too deep": "head -c 200000 /dev/zero | tr '\\0' '['",
    "no UTF-8": r"printf '{\"X\": \"\377\"}'",
    "nothing": "true",
    "exit 1": f"echo {SECRET}; echo {SECRET} >&2; exit 1",
    "a signal": f"echo {SECRET}; kill -9 $$",
    "no such program": f"/nonexistent/{SECRET}",
    "the session": prints({"Mcp-Session-Id": SECRET}),
    "the host": prints({"hOsT": SECRET}),
    "the length": prints({"Content-Length": "5"}),
    "smuggling": prints({"Transfer-Encoding": "chunked"}),
    "a proxy's": prints({"Proxy-Authorization": SECRET}),
}


@pytest.mark.requirement("AUT-11")
async def test_t39_invalid_output_sends_no_header_and_is_reported_without_its_text(
    bystander_host, home: Path
):
    with Listener() as listener:
        url = f"http://127.0.0.1:{listener.port}/mcp"
        entries = {
            f"x{number}": {"url": f"{url}?{number}", "headersHelper": command}
            for number, command in enumerate(BAD.values())
        }
        async with bystander_host(others=entries, settings={"DRAGOMAN_RECONNECT_ATTEMPTS": 3}) as a:
            for name, what in zip(entries, BAD, strict=True):
                view = a.host.servers[name]
                assert view.status == "needs-auth", f"{what}: {view.status} {view.reason}"
                assert isinstance(view.error, SignInNeeded)
                assert f"{name}: connect failed: its headersHelper " in (view.reason or ""), what
                assert "by hand" in (view.error.hint or "")
                assert SECRET not in f"{view} {view.error!r} {vars(view.error)}", what
            assert SECRET not in repr(list(a.events))
        assert listener.connections == 0
    assert not [file for file in (home / ".dragoman").rglob("*") if file.is_file() and holds_secret(file)]


def holds_secret(file: Path) -> bool:
    return SECRET.encode() in file.read_bytes()


@pytest.mark.parametrize("way", LEGS, ids=str)
async def test_t39_a_helper_that_hangs_is_killed_with_its_children_at_the_deadline(
    bystander_host, home: Path, monkeypatch: pytest.MonkeyPatch, way: Way
):
    monkeypatch.setattr(helper, "LIMIT_SECONDS", 0.5)
    pids = home / "pids"
    command = (
        f"trap '' INT TERM HUP; echo $$ >> {pids}; sh -c 'trap \"\" TERM; echo $$ >> {pids}; sleep 60'; :"
    )
    async with way.server() as server:
        async with bystander_host(way.entry(server, headersHelper=command)) as a:
            assert "did not end within 0.5 s" in (a.view.reason or "")
            found = [int(line) for line in pids.read_text().split()]
            assert len(found) == 2
            await until(lambda: not any(map(alive, found)), 5)
        assert server.asks == []


# --- a server that always refuses it ---


async def test_t39_a_repeated_401_runs_the_helper_twice_only(bystander_host, home: Path):
    runs = home / "runs"
    command = f"echo x >> {runs}; {GOOD}"
    async with streamable(revisions=(MODERN,)) as server:
        async with bystander_host({"url": server.url, "headersHelper": command}) as a:
            assert a.view.status == "connected"
            server.on["*"] = answers.challenge()
            calls = (a.host.call("mcp__hostile__echo", {"text": "x"}) for _ in range(20))
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(end, Exception) for end in ends)
            await until(lambda: a.view.status == "needs-auth")
        assert runs.read_text().count("x") <= 3


async def runs_when_a_token_expires(bystander_host: Any, home: Path, calls: int) -> int:
    """How often it runs when this many calls are refused at the same time with its first output."""
    runs = home / "runs"
    command = f'echo x >> {runs}; sleep 0.05; printf \'{{"Authorization": "%s"}}\' $(wc -l < {runs})'
    all_here = asyncio.Event()

    async def refuse_together(ask: Ask) -> Any:
        if ask.headers["Authorization"] != "1":
            return None
        if len(server.asked("tools/call")) >= calls:
            all_here.set()
        await all_here.wait()
        return await answers.challenge()(ask)

    async with (
        streamable(revisions=(MODERN,), on={"tools/call": refuse_together}) as server,
        bystander_host({"url": server.url, "headersHelper": command}) as a,
    ):
        made = (a.call("ledger", key=f"k{number}") for number in range(calls))
        assert await asyncio.gather(*made) == ["1"] * calls
    return len(runs.read_text().split())


async def test_t39_many_calls_refused_together_share_one_run_and_each_is_retried_once(
    bystander_host, home: Path
):
    assert await runs_when_a_token_expires(bystander_host, home, 30) == 2


async def test_t39_a_mutant_that_runs_the_helper_for_each_refusal_is_detected(
    bystander_host, home: Path, monkeypatch: pytest.MonkeyPatch
):
    async def each_for_itself(
        self: Any, headers: Any, request: Any, refused: Any, challenge: Challenge
    ) -> Signed:
        await self._credentials.renew(challenge)
        return Signed({**headers, **await self._ask()}, 0)

    monkeypatch.setattr(Signer, "sign_again", each_for_itself)
    assert await runs_when_a_token_expires(bystander_host, home, 5) == 6
