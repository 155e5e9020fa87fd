"""`dragoman serve` for callers with sign-ins of their own, as an administrator starts it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.callers_site import CallersSite, call, names, signed_in
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.e2e.test_serve import OPEN, Serving
from tests.gateway import ADA, BOB, Client
from tests.integration.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.requirement("GWY-3")]
CALLERS = {"ada": {"token": ADA}, "bob": {"token": BOB}}


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


def settings(home: Path, **more: Any) -> str:
    path = home / "gateway.json"
    path.write_text(json.dumps({"callers": CALLERS, "callerSignIn": ["tracker"], **more}))
    path.chmod(0o600)
    return str(path)


async def test_a_callers_sign_in_is_kept_after_a_restart_and_can_be_deleted(home: Path, site: CallersSite):
    words = ["--config", settings(home), "--mcp-config", config(tracker=site.entry)]
    async with Serving(*words, *OPEN) as served, Client(served.url) as ada:
        assert served.lines[0].startswith("Serving 0 tools of 0 servers at ")
        assert served.lines[1] == "  each caller signs in with an account of its own: tracker"
        await signed_in(ada, site, "anna")
    async with Serving(*words, *OPEN) as served, Client(served.url) as ada, Client(served.url, BOB) as bob:
        assert [await call(ada), await names(bob)] == ["anna", ["tracker__authenticate"]]
        for name, expected in (
            ("bob", "bob: not signed in to tracker.\n"),
            ("ada", "ada: signed out of tracker.\n"),
            ("ada", "ada: not signed in to tracker.\n"),
        ):
            forgotten = await asyncio.to_thread(run, "serve", *words, "--forget-caller", name)
            assert (forgotten.returncode, forgotten.stdout) == (0, expected), forgotten.stderr
        assert len(site.revoked) == 2
        site.tokens.update(site.owners)  # as at an authorization server whose tokens cannot be revoked
        sent = len(site.sent)
        assert await call(ada) != "anna"

        async def waits() -> bool:
            return await names(ada) == ["tracker__authenticate"]

        await until(waits)
        assert len(site.sent) == sent


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        (None, "callerSignIn names the server 'tracker', which is not configured"),
        ({"command": "true"}, "server 'tracker' does not use OAuth, so that"),
        ({"type": "ws", "url": "wss://x.example/"}, "server 'tracker' does not use OAuth, so that"),
        (
            {"type": "http", "url": "https://x.example/", "headers": {"authorization": "Bearer x"}},
            "server 'tracker' does not use OAuth, so that",
        ),
        (
            {"type": "http", "url": "https://x.example/", "oauth": {"xaa": True}},
            "server 'tracker' gets its tokens without the sign-in of a person, so that",
        ),
    ],
)
def test_servers_to_which_callers_cannot_sign_in_are_named_at_the_start(
    home: Path, entry: dict[str, Any] | None, error: str
):
    servers = config(**({} if entry is None else {"tracker": entry}), other={"command": "true"})
    found = run("serve", "--config", settings(home), "--mcp-config", servers)
    assert found.returncode != 0
    assert found.stdout == ""
    assert found.stderr.startswith(f"error: {error}"), found.stderr


def test_a_gateway_for_other_machines_needs_an_address_for_browsers(home: Path, site: CallersSite):
    words = ["serve", "--http", "0.0.0.0:0", "--mcp-config", config(tracker=site.entry)]
    found = run(*words, "--config", settings(home))
    assert "browsers need an address for callerSignIn" in found.stderr
    assert "publicUrl" in found.stderr
    for url, problem in (
        ("http://tools.example.com", "publicUrl must begin with https://"),
        ("https://tools.example.com/?a=b", "publicUrl has a query or a fragment"),
        ("tools.example.com", "publicUrl: "),
    ):
        found = run(*words, "--config", settings(home, publicUrl=url))
        assert problem in found.stderr, found.stderr
