"""A host's servers, as far as a call meets them: also when one has left meanwhile."""

from typing import Any

import pytest

from dragoman.catalog.pool import Catalog
from dragoman.catalog.tools import ServerTool
from dragoman.config.load import Configuration, Sources, load
from dragoman.config.plan import compare, marks_of
from dragoman.connections.factory import TransportDependencies
from dragoman.errors import ConfigError, HostClosed, NotConnected
from dragoman.events import EventBus
from dragoman.fleet import ServerRegistry
from dragoman.hooks.forms import HookedForms
from dragoman.hooks.points import NoHooks
from dragoman.names import QualifiedName, ServerName
from dragoman.testing import FakeClock
from tests.unit.fakes import definition

BOX = ServerName("box")
SAFE = ServerTool(
    BOX, QualifiedName("mcp__box__look"), definition("look", annotations={"readOnlyHint": True})
)
UNSAFE = ServerTool(BOX, QualifiedName("mcp__box__break"), definition("break"))


def configured(repeat: int = 0, **servers: dict[str, Any]) -> Configuration:
    overrides = {"DRAGOMAN_REPEAT_SAFE_CALLS": repeat}
    return load(Sources.here(given=servers, only_given=True, overrides=overrides))


def fleet_of(configuration: Configuration) -> ServerRegistry:
    return ServerRegistry(
        configuration,
        catalog=Catalog(),
        bus=EventBus(),
        clock=FakeClock(),
        forms=HookedForms(None, NoHooks()),
        pages=None,
        dependencies=TransportDependencies(),
    )


ENTRY: dict[str, Any] = {"command": "x"}


@pytest.mark.parametrize(
    ("repeat", "entry", "harmless"),
    [
        (1, {**ENTRY, "trusted": True}, True),
        (0, {**ENTRY, "trusted": True}, False),
        (1, ENTRY, False),
        (1, {**ENTRY, "trusted": False}, False),
    ],
    ids=str,
)
async def test_a_call_may_be_repeated_only_on_the_word_of_a_trusted_server_where_the_setting_allows_it(
    repeat: int, entry: dict[str, Any], harmless: bool
):
    fleet = fleet_of(configured(repeat, box=entry))

    assert fleet.is_harmless(SAFE) is harmless
    assert not fleet.is_harmless(UNSAFE)


async def left() -> ServerRegistry:
    """A fleet whose only server was removed from the configuration."""
    before, after = configured(1, box={**ENTRY, "trusted": True}), configured(1)
    fleet = fleet_of(before)
    await fleet.adopt(after, compare(marks_of(before), marks_of(after)))
    return fleet


async def test_a_server_that_left_is_not_connected():
    fleet = await left()

    assert fleet.session_of(BOX) is None
    with pytest.raises(NotConnected, match="no longer configured"):
        await fleet.awaited_session(BOX, 1)
    for asked in (fleet.answerer_of, fleet.watching_of):
        with pytest.raises(NotConnected, match="no longer configured"):
            asked(BOX)


async def test_a_call_under_way_when_its_server_left_is_not_repeated():
    fleet = await left()

    assert not fleet.is_harmless(SAFE)


@pytest.mark.parametrize("verb", ["enable", "disable", "reconnect"])
async def test_a_server_that_is_not_there_cannot_be_told_anything(verb: str):
    fleet = fleet_of(configured(box=ENTRY))
    with pytest.raises(ConfigError, match="'bax'") as caught:
        await getattr(fleet, verb)("bax")

    assert "box" in (caught.value.hint or "")


async def test_a_fleet_that_is_closed_makes_no_more_calls():
    fleet = fleet_of(configured(box=ENTRY))
    await fleet.close()

    assert fleet.session_of(BOX) is None
    with pytest.raises(HostClosed):
        await fleet.awaited_session(BOX, 1)


async def test_a_server_has_its_own_time_limit_or_that_of_all():
    fleet = fleet_of(configured(box={**ENTRY, "timeout": 1500}, other=ENTRY))

    assert fleet.timeout_of(BOX) == 1.5
    assert fleet.timeout_of(ServerName("other")) == 100_000
