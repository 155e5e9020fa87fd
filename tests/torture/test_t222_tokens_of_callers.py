"""T222: the token of a caller is never sent for another caller, also with a similar name or after a
change."""

import contextlib
import itertools
import json
import unicodedata
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from dragoman.auth.stores.base import Vault
from dragoman.config.scopes import Sources
from dragoman.gateway import callers as callers_module
from dragoman.gateway.callers import identity_of
from dragoman.gateway.settings import CallerEntry
from dragoman.interaction import Caller
from tests.callers_site import CallersSite, call, names, signed_in
from tests.gateway import ADA, BOB, Client, Running, gateway_of
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("GWY-3")
LOOK_ALIKE = [
    "ada",
    "Ada",
    "ada ",
    " ada",
    "ada|",
    "ada\x00",
    "аda",
    "é",
    unicodedata.normalize("NFD", "é"),
    "\ud800",
]


@pytest.fixture
def site() -> Iterator[CallersSite]:
    with CallersSite() as running:
        yield running


def test_t222_names_of_lookalike_letters_are_different_identities():
    found = [identity_of(Caller(name)) for name in LOOK_ALIKE]
    assert len(set(found)) == len(LOOK_ALIKE)
    assert all(each.startswith("gateway-caller-") and len(each) == 79 and "|" not in each for each in found)


async def test_t222_callers_with_lookalike_names_have_separate_accounts(site: CallersSite):
    tokens = {name: f"token-number-{number:04}" for number, name in enumerate(LOOK_ALIKE[:8])}
    callers = {name: CallerEntry(token=token) for name, token in tokens.items()}
    async with (
        gateway_of({"tracker": site.entry}, own=["tracker"], callers=callers) as running,
        contextlib.AsyncExitStack() as stack,
    ):
        clients = [await stack.enter_async_context(Client(running.url, token)) for token in tokens.values()]
        for number, client in enumerate(clients):
            assert await names(client) == ["tracker__authenticate"]
            await signed_in(client, site, f"account-{number}")
        assert [await call(client) for client in clients] == [f"account-{n}" for n in range(8)]


async def test_t222_the_account_of_the_gateways_operator_is_not_used(site: CallersSite):
    """The operator's tokens are stored for the same server, with and without an identity."""
    site.owners["canary-of-the-person"] = "the person"
    site.tokens.add("canary-of-the-person")
    async with gateway_of({"tracker": site.entry}, own=["tracker"]) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        (key,) = Vault().keys()
        account = Vault().get(key)
        assert account is not None
        token = next(token for token, owner in site.owners.items() if owner == "anna")
        usual, _, _ = key.rpartition("|")
        for other in (usual, f"{usual}|ada", f"{usual}|work"):
            Vault().put(other, account.replace(token.encode(), b"canary-of-the-person"))
    entry = {**site.entry, "oauth": {"identity": "work"}}
    for given in (site.entry, entry):
        async with gateway_of({"tracker": given}, own=["tracker"]) as running, Client(running.url) as ada:
            assert await call(ada) == "anna"
            async with Client(running.url, BOB) as bob:
                assert await names(bob) == ["tracker__authenticate"]
    assert "canary-of-the-person" not in site.sent


@contextlib.asynccontextmanager
async def configured(home: Path, site: CallersSite) -> AsyncIterator[Running]:
    write(home, {"tracker": site.entry})
    async with gateway_of(Sources.here(), own=["tracker"], audit=False, server_logs=False) as running:
        yield running


def write(home: Path, servers: object) -> None:
    path = home / ".dragoman" / "settings.json"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))


async def test_t222_a_changed_entry_keeps_the_accounts_separate(home: Path, site: CallersSite):
    async with configured(home, site) as running, Client(running.url) as ada, Client(running.url, BOB) as bob:
        await signed_in(ada, site, "anna")
        await signed_in(bob, site, "bert")
        changes = itertools.cycle([{"timeout": 5000}, {}])
        for _ in range(3):
            write(home, {"tracker": {**site.entry, **next(changes)}})
            await running.host.reload()
            assert [await call(ada), await call(bob)] == ["anna", "bert"]
        write(
            home, {"tracker": {**site.entry, "headers": {"X-Team": "red"}}}
        )  # another account at the server
        await running.host.reload()
        assert await call(ada) == await call(bob) == "Unknown tool: tracker__whoami"
        write(home, {})
        await running.host.reload()
        assert await names(ada) == await names(bob) == []


async def test_t222_an_entry_that_gets_its_own_credentials_is_not_used_for_callers(
    home: Path, site: CallersSite
):
    async with configured(home, site) as running, Client(running.url) as ada:
        await signed_in(ada, site, "anna")
        site.tokens.add("canary-of-all")  # the server would accept it
        before = len(site.sent)
        for entry in (
            {**site.entry, "headers": {"Authorization": "Bearer canary-of-all"}},
            {**site.entry, "headersHelper": 'echo \'{"Authorization": "Bearer canary-of-all"}\''},
            {**site.entry, "oauth": {"grant": "client_credentials", "clientId": "x", "clientSecret": "y"}},
            {**site.entry, "oauth": {"xaa": True}},
        ):
            write(home, {"tracker": entry})
            await running.host.reload()
            assert await names(ada) == []
            assert await call(ada) == "Unknown tool: tracker__whoami"
        assert len(site.sent) == before
        write(home, {"tracker": site.entry})
        await running.host.reload()
        assert await call(ada) == "anna"


async def test_t222_hosts_that_are_added_and_removed_keep_the_accounts_separate(
    site: CallersSite, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(callers_module, "HOSTS_LIMIT", 1)
    async with (
        gateway_of({"tracker": site.entry}, own=["tracker"]) as running,
        Client(running.url, ADA) as ada,
        Client(running.url, BOB) as bob,
    ):
        await signed_in(ada, site, "anna")
        await signed_in(bob, site, "bert")
        for _ in range(5):
            assert [await call(ada), await call(bob)] == ["anna", "bert"]


async def test_t222_a_token_that_expires_is_refreshed_for_its_caller(site: CallersSite):
    async with (
        gateway_of({"tracker": site.entry}, own=["tracker"]) as running,
        Client(running.url, ADA) as ada,
        Client(running.url, BOB) as bob,
    ):
        await signed_in(ada, site, "anna")
        await signed_in(bob, site, "bert")
        site.expire()
        assert [await call(bob), await call(ada)] == ["bert", "anna"]
        await until(lambda: sorted(site.refreshes) == ["anna", "bert"])
        assert site.reused == []
