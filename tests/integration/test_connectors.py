"""An organisation's list of servers, fetched from a real endpoint."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.config import connectors
from dragoman.config.load import load
from dragoman.config.schema import ConnectorsConfig
from dragoman.config.scopes import Sources
from tests.integration.desk import WELL_BEHAVED, Desk

pytestmark = pytest.mark.slow

OPTIONS: dict[str, Any] = {"permission_mode": "bypassPermissions"}
FIGMA = {"type": "http", "url": "https://figma.example.com/mcp"}


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


class Endpoint:
    """Answers with what it is told to; remembers who asked."""

    def __init__(self) -> None:
        self.answer: Any = {"mcpServers": {"claude.ai Figma": FIGMA}}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.delay = asyncio.Event()
        self.delay.set()
        self.seen: list[str | None] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.Response:
        self.seen.append(request.headers.get("Authorization"))
        await self.delay.wait()
        body = self.answer if isinstance(self.answer, bytes) else json.dumps(self.answer).encode()
        return web.Response(body=body, status=self.status, headers=self.headers)


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    async with _served() as endpoint:
        yield endpoint


@asynccontextmanager
async def _served() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    app = web.Application()
    app.router.add_get("/connectors", endpoint.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    endpoint.url = f"http://127.0.0.1:{port}/connectors"
    try:
        yield endpoint
    finally:
        endpoint.delay.set()
        await runner.cleanup()


@pytest.mark.requirement("CFG-1")
async def test_the_list_is_fetched_with_the_bearer_token_and_cached(
    desk: Desk, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("ORG_TOKEN", "s3cret")
    desk.user({"mine": WELL_BEHAVED}, connectors={"url": endpoint.url, "bearer": "${ORG_TOKEN}"})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert set(host.servers) == {"mine", "claude.ai Figma"}
        assert host.servers["claude.ai Figma"].scope == "connectors"
    assert endpoint.seen == ["Bearer s3cret"]
    kept = load(Sources.here()).servers["claude.ai Figma"]
    assert kept.config is not None
    assert kept.config.url == FIGMA["url"]
    assert "s3cret" not in "".join(
        path.read_text() for path in desk.home.rglob("*.json") if path != desk.user_file
    )
    async with Host.configured(**OPTIONS) as host:  # fresh enough: not asked again
        await host.ready(timeout=30)
    assert len(endpoint.seen) == 1


@pytest.mark.requirement("CFG-1")
async def test_a_server_of_any_other_scope_takes_precedence_over_a_connector(desk: Desk, endpoint: Endpoint):
    endpoint.answer = {
        "connectors": [{"name": "box", **FIGMA}, {"name": "same", "url": "https://dup.example/mcp"}]
    }
    desk.user(
        {"box": WELL_BEHAVED, "ours": {"url": "https://dup.example/mcp"}}, connectors={"url": endpoint.url}
    )
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert host.servers["box"].scope == "user"
        whys = {dropped.candidate.name: dropped.why for dropped in host.configuration.dropped}
        assert whys == {"box": "replaced", "same": "duplicate"}


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize(
    ("status", "answer", "complaint"),
    [
        (500, {}, "answered 500"),
        (401, {}, "answered 401"),
        (302, {}, "answered 302"),
        (200, b"<html>", "not JSON"),
        (200, b"[" * 100_000, "not JSON"),
        (200, [], "neither"),
        (200, b" " * (connectors.LIMIT_BYTES + 1), "larger than"),
    ],
)
async def test_a_failure_keeps_the_last_list_and_is_reported(
    desk: Desk, endpoint: Endpoint, status: int, answer: Any, complaint: str
):
    config = ConnectorsConfig(endpoint.url, "s3cret")
    desk.user({"mine": WELL_BEHAVED}, connectors={"url": endpoint.url, "bearer": "s3cret"})
    cache = Sources.here().connectors_cache
    assert await connectors.refresh(cache, config)
    endpoint.status, endpoint.answer = status, answer
    if status == 302:
        endpoint.headers["Location"] = endpoint.url
    await connectors.refresh(cache, config)
    configuration = load(Sources.here())
    assert set(configuration.servers) == {"mine", "claude.ai Figma"}
    (problem,) = configuration.problems
    assert complaint in problem
    assert "s3cret" not in problem
    assert len(endpoint.seen) == 2  # no redirect was followed


@pytest.mark.requirement("CFG-1")
async def test_an_endpoint_that_does_not_answer_delays_no_server(
    desk: Desk, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(connectors, "TIMEOUT_SECONDS", 0.5)
    endpoint.delay.clear()
    desk.user({"mine": WELL_BEHAVED}, connectors={"url": endpoint.url})
    async with Host.configured(**OPTIONS) as host:
        views = await host.ready(timeout=30)
        assert views["mine"].status == "connected"
        assert any("no answer within" in problem for problem in host.configuration.problems)


@pytest.mark.requirement("CFG-1", "CFG-7")
async def test_entries_from_the_network_run_no_command_and_read_no_local_value(
    desk: Desk, endpoint: Endpoint
):
    endpoint.answer = {
        "mcpServers": {
            "runs": {"command": "touch", "args": ["canary"]},
            "helps": {**FIGMA, "headersHelper": "touch canary"},
            "takes": {"url": "https://evil.example/${HOME}"},
            "denied": {"url": "https://denied.example/mcp"},
            "odd": 7,
            "fine": FIGMA,
        }
    }
    desk.managed(deniedMcpServers=[{"serverUrl": "https://denied.example"}])
    desk.user(connectors={"url": endpoint.url})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert set(host.servers) == {"fine", "denied"}
        assert host.servers["denied"].status == "disabled"
        (problem,) = host.configuration.problems
        assert all(name in problem for name in ("runs", "helps", "takes", "odd"))


@pytest.mark.requirement("CFG-1")
@pytest.mark.parametrize("url", ["http://example.com/list", "ftp://example.com", "https://", "${GONE}"])
async def test_a_list_from_an_invalid_or_missing_url_is_reported(desk: Desk, url: str):
    desk.user({"mine": WELL_BEHAVED}, connectors={"url": url, "bearer": "s3cret"})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert host.servers["mine"].status == "connected"
        (problem,) = host.configuration.problems
        assert "connectors" in problem
        assert "s3cret" not in problem


async def test_the_administrators_list_takes_precedence_over_the_persons(desk: Desk, endpoint: Endpoint):
    desk.managed(connectors={"url": endpoint.url})
    desk.user(connectors={"url": "https://other.example"})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
    assert len(endpoint.seen) == 1


async def test_a_project_cannot_name_a_list(desk: Desk, endpoint: Endpoint):
    desk.local({}, connectors={"url": endpoint.url})
    desk.in_project({}, connectors={"url": endpoint.url})
    async with Host.configured(**OPTIONS) as host:
        await host.ready(timeout=30)
        assert len(host.configuration.problems) == 2
    assert endpoint.seen == []
