"""Checks that the torture tests can fail: builds with one added fault each, which the named test must find.

Each fault is added by the test; nothing of it is in the product.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from dragoman.auth import authorization, lock, sign_in
from dragoman.calls import attempts, recovery
from dragoman.calls.recovery import GIVE_UP, Step
from dragoman.errors import CallError, ConnectionLost, SignInNeeded
from tests.e2e.command import config, entry
from tests.e2e.person import settings
from tests.servers.web import Ledger
from tests.servers.web.auth_world import AuthWorld
from tests.torture import test_t31_forbidden_addresses as t31
from tests.torture import test_t33_callback as t33
from tests.torture import test_t35_refresh_race as t35
from tests.torture.cutting import Lanes, lanes
from tests.torture.network import HTTP_WAYS, WAYS, Way
from tests.torture.test_t41_terminal_injection import HOSTILE, UncleanedPerson, harm_in

# --- retry-on-drop (T27) ---


def repeats_what_was_dropped(error: CallError, *, attempt: int, retry_safe: bool) -> Step:
    return Step("repeat") if attempt < 2 else GIVE_UP


@pytest.mark.slow
@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("way", [HTTP_WAYS[0], HTTP_WAYS[3], *WAYS[5:]], ids=str)
async def test_t27_finds_a_build_that_repeats_what_was_dropped(
    bystander_host, way: Way, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(attempts, "react", repeats_what_was_dropped)
    async with lanes(bystander_host, way, count=1) as cut:
        await cut.lanes[0].cut_at("down", [0])
    assert max(cut.ledger.counts.values()) == 2, "the fault is planted where it matters"
    with pytest.raises(AssertionError, match="lane0 0001"):
        cut.judge()


@pytest.mark.requirement("LIF-5")
async def test_t27_finds_a_recovery_table_without_a_condition(
    bystander_host, monkeypatch: pytest.MonkeyPatch
):
    careless = tuple(row._replace(if_retry_safe=False) for row in recovery.TABLE)
    monkeypatch.setattr(recovery, "TABLE", careless)
    async with lanes(bystander_host, HTTP_WAYS[0], count=1) as cut:
        await cut.lanes[0].cut_at("down", [0])
    with pytest.raises(AssertionError, match="lane0 0001"):
        cut.judge()


async def test_t27_accepts_the_unchanged_build(bystander_host):
    async with lanes(bystander_host, HTTP_WAYS[0], count=1) as cut:
        await cut.lanes[0].cut_at("down", [0])
    cut.judge()
    assert cut.cuts_felt == 1


def test_t27_finds_a_call_that_ran_but_is_reported_as_not_sent():
    ledger = Ledger()
    ledger.enter("a 0001")
    lane: Any = SimpleNamespace(ended={"a 0001": ConnectionLost("a", "gone", may_have_run=False)})
    judged = Lanes([lane], ledger)
    with pytest.raises(AssertionError, match="said not to have been sent"):
        judged.judge()


# --- no-state-check (T33) ---


@pytest.mark.requirement("AUT-1")
async def test_t33_finds_a_build_that_does_not_check_the_state(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(sign_in, "is_for", lambda attempt, answer: "code" in answer.parameters)
    monkeypatch.setattr(authorization, "is_for", lambda attempt, answer: True)
    with pytest.raises(AssertionError):
        await t33.test_t33_an_attack_on_the_listener_changes_nothing("wrong_state", caplog)


# --- follows-redirects (T31) ---


@pytest.mark.requirement("AUT-1")
async def test_t31_finds_a_build_that_follows_redirects(monkeypatch: pytest.MonkeyPatch):
    honest = aiohttp.ClientSession.request

    def follows(self: aiohttp.ClientSession, method: str, url: Any, **options: Any) -> Any:
        return honest(self, method, url, **{**options, "allow_redirects": True})

    monkeypatch.setattr(aiohttp.ClientSession, "request", follows)
    with pytest.raises(AssertionError):
        await t31.test_t31_a_redirect_is_not_followed(307)


# --- no-cross-process-lock (T35) ---


@asynccontextmanager
async def no_lock(path: Path, wait_seconds: float = 0) -> AsyncIterator[None]:
    yield


@pytest.mark.requirement("AUT-3")
async def test_t35_finds_a_build_without_a_lock_between_processes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lock, "locked", no_lock)
    async with AuthWorld() as world:
        with pytest.raises((AssertionError, SignInNeeded)):
            await t35.judge(world)
        assert world.refreshes > 1, "the fault is planted where it matters"
        assert world.reuses > 0


# --- raw print of server text (T41) ---

RAW: dict[str, tuple[tuple[str, ...], str | None]] = {
    "a list": (("tools", *HOSTILE), None),
    "a result": (("call", "mcp__e2e__text", *HOSTILE), None),
    "an error": (("call", "mcp__e2e__error", *HOSTILE), None),
    "progress": (("call", "mcp__e2e__progress", *HOSTILE), None),
    "last words": (("tools", "--mcp-config", config(e2e=entry("dies", "worse"))), None),
    "a question": (("call", "mcp__e2e__annotated", *HOSTILE), "y/a/p/n"),
    "a question by rule": (("call", "mcp__e2e__described", *HOSTILE), "y/n"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("words", "keys"), RAW.values(), ids=RAW.keys())
def test_t41_finds_a_build_that_prints_uncleaned_texts(home: Path, words: tuple[str, ...], keys: str | None):
    settings(home, ask=["mcp__e2e__described"])
    with UncleanedPerson(*words) as person:
        if keys is not None:
            person.answers(keys, "n")
        output = person.finish()

    # rich drops the bell of what it repaints, and nothing else.
    assert harm_in(output) >= {"0x1b"}
