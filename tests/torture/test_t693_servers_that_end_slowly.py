"""T693: the server of a removed or changed entry ends slowly. Changes of the settings meanwhile apply at
once, and other servers are started."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until

pytestmark = pytest.mark.requirement("CFG-11")
PATIENT = {"DRAGOMAN_STOP_WAIT_MS": 60_000}
WELL_BEHAVED = stdio_server("well_behaved.py")


class Slow:
    """A server that ends when the file `gate` exists."""

    def __init__(self, home: Path) -> None:
        self._settings = home / ".dragoman" / "settings.json"
        self.gate, self.diary = home / "gate", home / "diary"
        self.entry = stdio_server("finishes_its_work.py", str(self.gate), str(self.diary))

    @property
    def is_ending(self) -> bool:
        return self.diary.exists()

    def configure(self, permissions: Any = None, /, **servers: Any) -> None:
        self._settings.parent.mkdir(exist_ok=True)
        self._settings.write_text(json.dumps({"mcpServers": servers, "permissions": permissions or {}}))


@asynccontextmanager
async def host_with(slow: Slow, **others: Any) -> AsyncGenerator[Host]:
    slow.configure(slow=slow.entry, **others)
    async with Host.configured(settings=PATIENT, permission_mode="bypassPermissions") as host:
        await host.ready(timeout=20)
        assert (await host.call("mcp__slow__echo", {"message": "x"})).text == "x"
        try:
            yield host
        finally:
            slow.gate.touch()


async def begun(host: Host, ending: Slow, permissions: Any = None, /, **servers: Any) -> "asyncio.Task[Any]":
    """A reload that waits for the slow server."""
    ending.configure(permissions, **servers)
    reload = asyncio.create_task(host.reload())
    await until(lambda: ending.is_ending)
    return reload


async def test_t693_a_deny_rule_applies_at_once(home: Path):
    slow = Slow(home)
    async with host_with(slow, calm=WELL_BEHAVED) as host:
        first = await begun(host, slow, calm=WELL_BEHAVED)
        slow.configure({"deny": ["mcp__calm"]}, calm=WELL_BEHAVED)
        second = asyncio.create_task(host.reload())
        async with at_once():
            while not (await host.call("mcp__calm__echo", {"message": "x"})).is_error:
                await asyncio.sleep(0.01)
        assert (first.done(), second.done()) == (False, False)
        slow.gate.touch()
        await asyncio.gather(first, second)


@pytest.mark.parametrize("is_removed", [True, False])
async def test_t693_another_server_is_started_meanwhile(home: Path, is_removed: bool):
    slow = Slow(home)
    async with host_with(slow, changed=WELL_BEHAVED) as host:
        remaining = {} if is_removed else {"slow": {**slow.entry, "env": {"A": "1"}}}
        await begun(host, slow, new=WELL_BEHAVED, changed={**WELL_BEHAVED, "env": {"A": "1"}}, **remaining)
        async with at_once(10):
            await until(lambda: {host.servers[name].status for name in ("new", "changed")} == {"connected"})
        assert ("slow" in host.servers) is not is_removed


async def test_t693_only_the_last_entry_of_a_name_is_started(home: Path):
    slow = Slow(home)
    async with host_with(slow) as host:
        reloads = [await begun(host, slow)]
        for entry in (
            WELL_BEHAVED,
            {**WELL_BEHAVED, "env": {"A": "1"}},
            None,
            {**WELL_BEHAVED, "env": {"A": "2"}},
        ):
            slow.configure(**({} if entry is None else {"slow": entry}))
            reloads.append(asyncio.create_task(host.reload()))
            await until(lambda entry=entry: ("slow" in host.configuration.servers) is (entry is not None))
        await until(lambda: host.configuration.servers["slow"].config.env == {"A": "2"})  # type: ignore[union-attr]
        assert (host.servers["slow"].status, [each.done() for each in reloads]) == ("pending", [False] * 5)
        slow.gate.touch()
        await asyncio.gather(*reloads)
        await host.ready(timeout=20)
        assert (await host.call("mcp__slow__echo", {"message": "y"})).text == "y"
        assert slow.diary.read_text().splitlines() == ["its input ended", "finished"]


async def test_t693_an_immediate_close_ends_the_slow_server(home: Path):
    slow = Slow(home)
    async with host_with(slow) as host:
        reload = await begun(host, slow)
        async with at_once():
            await host.close(now=True)
            await reload
    assert slow.diary.read_text().splitlines() == ["its input ended"]
