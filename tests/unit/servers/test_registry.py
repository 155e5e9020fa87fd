"""The registry of servers, and one server as a call uses it: also when it was removed meanwhile."""

from typing import Any

import pytest

from dragoman.catalog.catalog import Catalog
from dragoman.catalog.listing import ToolList
from dragoman.catalog.tools import ServerTool
from dragoman.config.load import Configuration, Sources, load
from dragoman.config.plan import compare, snapshots_of
from dragoman.connections.factory import TransportDependencies
from dragoman.connections.target import ConnectionContext
from dragoman.errors import ConfigError, HostClosed, NotConnected
from dragoman.events import EventBus, ServerLogged, ToolsChanged
from dragoman.names import QualifiedName, ServerName
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server
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


def registry_of(configuration: Configuration) -> ServerRegistry:
    return ServerRegistry(
        configuration,
        Catalog(),
        ConnectionContext.of(configuration.settings, FakeClock(), EventBus()),
        TransportDependencies(),
        lambda _: (),
    )


ENTRY: dict[str, Any] = {"command": "x"}


@pytest.mark.parametrize(
    ("repeat", "entry", "retry_safe"),
    [
        (1, {**ENTRY, "trusted": True}, True),
        (0, {**ENTRY, "trusted": True}, False),
        (1, ENTRY, False),
        (1, {**ENTRY, "trusted": False}, False),
    ],
    ids=str,
)
async def test_a_call_is_retry_safe_only_if_a_trusted_server_declares_it_where_the_setting_allows_it(
    repeat: int, entry: dict[str, Any], retry_safe: bool
):
    box = registry_of(configured(repeat, box=entry))["box"]

    assert box.is_retry_safe(SAFE) is retry_safe
    assert not box.is_retry_safe(UNSAFE)


async def removed() -> Server:
    """The only server of a host, after it was removed from the configuration."""
    before, after = configured(1, box={**ENTRY, "trusted": True}), configured(1)
    registry = registry_of(before)
    server = registry["box"]
    registry.apply(after, compare(snapshots_of(before), snapshots_of(after)))
    await registry.ended()
    assert "box" not in registry
    return server


async def test_a_server_that_was_removed_is_not_connected():
    server = await removed()

    assert server.session() is None
    with pytest.raises(NotConnected, match="no longer configured"):
        await server.wait_for_session(1)


async def test_a_call_under_way_when_its_server_was_removed_is_not_repeated():
    assert not (await removed()).is_retry_safe(SAFE)


def test_an_unknown_server_is_reported_with_the_known_ones():
    with pytest.raises(ConfigError, match="'bax'") as caught:
        registry_of(configured(box=ENTRY)).named("bax")

    assert "box" in (caught.value.hint or "")


async def test_a_closed_registry_gives_no_session():
    registry = registry_of(configured(box=ENTRY))
    box = registry["box"]
    await registry.close()

    assert box.session() is None
    with pytest.raises(HostClosed):
        await box.wait_for_session(1)


async def test_a_server_has_its_own_time_limit_or_the_default():
    registry = registry_of(configured(box={**ENTRY, "timeout": 1500}, other=ENTRY))

    assert registry["box"].timeout_seconds == 1.5
    assert registry["other"].timeout_seconds == 100_000


async def test_a_changed_entry_is_another_server_and_an_unchanged_one_the_same():
    before = configured(a=ENTRY, b=ENTRY)
    after = configured(a=ENTRY, b={"command": "y"})
    registry = registry_of(before)
    a, b = registry["a"], registry["b"]
    registry.apply(after, compare(snapshots_of(before), snapshots_of(after)))
    await registry.ended()

    assert registry["a"] is a
    assert registry["b"] is not b
    await registry.close()


async def test_changed_time_limits_apply_to_unchanged_servers():
    before = configured(box=ENTRY)
    after = load(
        Sources.here(
            given={"box": ENTRY},
            only_given=True,
            overrides={"MCP_TOOL_TIMEOUT": 2_000, "MCP_REQUEST_TIMEOUT_MS": 3_000},
        )
    )
    registry = registry_of(before)
    registry.apply(after, compare(snapshots_of(before), snapshots_of(after)))
    await registry.ended()

    assert registry["box"].timeout_seconds == 2.0
    assert registry["box"].request_seconds == 3.0


def test_a_new_list_of_one_server_leaves_the_tools_of_another_as_they_are():
    registry = registry_of(configured(a=ENTRY, b=ENTRY))
    a, b = registry["a"], registry["b"]
    a.tools.set(ToolList((definition("look"),)))
    b.tools.set(ToolList((definition("look"), definition("take"))))
    registry.catalog.changed()
    before = {tool.name: tool for tool in registry.catalog.tools()}
    a.tools.set(ToolList((definition("look"), definition("more"))))
    registry.catalog.changed()
    after = {tool.name: tool for tool in registry.catalog.tools()}

    assert sorted(after) == ["mcp__a__look", "mcp__a__more", "mcp__b__look", "mcp__b__take"]
    assert [after[name] is before[name] for name in before] == [True, True, True]


def test_a_tool_that_changes_is_another_object():
    registry = registry_of(configured(a=ENTRY))
    found = []
    for more in ({}, {}, {"annotations": {"readOnlyHint": True}}, {"annotations": {"readOnlyHint": 1}}):
        registry["a"].tools.set(ToolList((definition("look", **more),)))
        registry.catalog.changed()
        found.append(registry.catalog.resolve("mcp__a__look"))

    assert found[0] is found[1]
    assert len({id(tool) for tool in found}) == 3


async def test_events_of_a_server_that_is_being_replaced_hold_no_secrets_of_its_old_entry():
    before = configured(box={**ENTRY, "env": {"API_TOKEN": "hunter2-hunter2"}})
    after = configured(box={"command": "y"})
    registry = registry_of(before)
    heard = registry.bus.listen()
    server = registry["box"]
    close = server.connection.close

    async def talkative() -> None:
        registry.bus.publish(ServerLogged(server="box", level="info", text="bye hunter2-hunter2"))
        registry.bus.publish(ToolsChanged(server="box", tool_count=0, problems=("no hunter2-hunter2",)))
        await close()

    server.connection.close = talkative  # type: ignore[method-assign]
    registry.apply(after, compare(snapshots_of(before), snapshots_of(after)))
    await registry.ended()
    logged, changed = await anext(heard), await anext(heard)

    assert logged == ServerLogged(server="box", level="info", text="bye [secret]")
    assert changed == ToolsChanged(server="box", tool_count=0, problems=("no [secret]",))
    with pytest.raises(NotConnected, match="is being replaced"):
        await server.wait_for_session(1)
    await registry.close()
