"""Proof that the cases about the gateway find builds with one planted fault each. See `test_mutants.py`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from dragoman.catalog.tools import ServerTool
from dragoman.gateway.access import LOCAL, Identify, KnownCaller, RequestRefused, Verify, with_token
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.handlers import ClientHandlers
from dragoman.gateway.outbox import Outbox
from dragoman.wire.server.connection import ClientConnection
from tests import gateway as helper
from tests.integration import test_gateway as cases
from tests.torture import test_t77_fail_closed as t77
from tests.torture import test_t80_list_filter_equals_call_filter as t80
from tests.torture import test_t82_no_cross_talk as t82
from tests.torture import test_t230_searching_what_is_denied as t230
from tests.torture import test_t231_clients_that_do_not_read as t231

# --- list-filter-only (T80): the list is filtered, calls are not ---


@pytest.mark.requirement("GWY-1")
async def test_t80_finds_a_build_that_filters_the_list_only(monkeypatch: pytest.MonkeyPatch):
    def any_tool(self: Gateway, name: str, view: str = "", own: Any = None) -> ServerTool | None:
        every = {self.name_of(tool): tool for tool in self.host.tools(include_denied=True)}
        return every.get(name)

    monkeypatch.setattr(Gateway, "tool", any_tool)
    with pytest.raises((AssertionError, KeyError)):
        await t80.test_t80_a_denied_tool_is_unknown_in_every_spelling("office__hold")


@pytest.mark.requirement("GWY-3")
@pytest.mark.parametrize("case", ["callers", "search"])
async def test_a_build_in_which_callers_may_call_unlisted_tools_is_found(
    case: str, monkeypatch: pytest.MonkeyPatch
):
    honest = ClientHandlers._call  # pyright: ignore[reportPrivateUsage]

    async def call(self: ClientHandlers, request: Any) -> Any:
        self.may_call = lambda tool: True  # type: ignore[method-assign]
        try:
            return await honest(self, request)
        finally:
            del self.may_call

    monkeypatch.setattr(ClientHandlers, "_call", call)
    with pytest.raises((AssertionError, KeyError)):
        if case == "callers":
            await cases.test_callers_may_use_what_their_entry_names()
        else:
            await t230.test_t230_tools_that_a_caller_may_not_use_are_neither_found_nor_called(helper.ADA)


# --- fail-open authentication (T77) ---


def open_on_failure(*verifiers: Verify, **options: Any) -> Identify:
    honest = with_token(*verifiers, **options)

    async def identify(authorization: Collection[str]) -> KnownCaller:
        try:
            return await honest(authorization)
        except RequestRefused as refused:
            if refused.status == 503:
                return LOCAL
            raise

    return identify


@pytest.mark.requirement("GWY-3")
async def test_t77_finds_a_build_that_admits_requests_when_tokens_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(t77, "with_token", open_on_failure)
    with pytest.raises(AssertionError):
        await t77.test_t77_a_token_check_that_raises_refuses_the_request()
    with pytest.raises(AssertionError):
        await t77.test_t77_an_unavailable_issuer_refuses_the_request()


@pytest.mark.requirement("GWY-3")
async def test_t77_finds_a_build_that_admits_requests_without_a_token(monkeypatch: pytest.MonkeyPatch):
    def open_without(*verifiers: Verify, **options: Any) -> Identify:
        honest = with_token(*verifiers, **options)

        async def identify(authorization: Collection[str]) -> KnownCaller:
            return await honest(authorization) if authorization else LOCAL

        return identify

    monkeypatch.setattr(helper, "with_token", open_without)
    with pytest.raises(AssertionError):
        await t77.test_t77_a_request_without_a_valid_token_is_refused("/mcp", [])


# --- a shared id map (T82) ---


@pytest.mark.requirement("GWY-3")
async def test_t82_finds_a_build_in_which_clients_share_their_request_ids(monkeypatch: pytest.MonkeyPatch):
    shared: dict[Any, Any] = {}
    honest = ClientConnection.__init__

    def init(self: ClientConnection, *arguments: Any, **options: Any) -> None:
        honest(self, *arguments, **options)
        self._running = shared  # pyright: ignore[reportPrivateUsage]

    monkeypatch.setattr(ClientConnection, "__init__", init)
    monkeypatch.setattr(t82, "CALLS", 2 * t82.CLIENTS)
    with pytest.raises((AssertionError, KeyError)):
        await t82.test_t82_fifty_clients_with_the_same_id_each_get_their_own_reply("legacy")


# --- replies that are left out (T231) ---


@pytest.mark.requirement("GWY-1")
async def test_t231_finds_a_build_that_leaves_out_replies(monkeypatch: pytest.MonkeyPatch):
    honest, count = Outbox.put, 0

    def put(self: Outbox, message: bytes) -> None:
        nonlocal count
        count += b'"result"' in message
        if count != 3:  # that of `initialize`, and the first of the calls, are sent
            honest(self, message)

    monkeypatch.setattr(Outbox, "put", put)
    monkeypatch.setattr(t231, "WAIT_SECONDS", 2.0)
    with pytest.raises((AssertionError, TimeoutError)):
        await t231.test_t231_a_slow_client_receives_every_reply_and_no_flood_of_progress(monkeypatch)
