"""Which revision is spoken: found out once, remembered, or pinned."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import HandshakeFailed
from dragoman.protocol import LEGACY_REVISIONS, MODERN_REVISIONS
from tests.integration.workshop import workshop
from tests.servers import stdio_server

QUICK_PROBE = {"DRAGOMAN_PROBE_TIMEOUT_MS": 300}
PROBE = "server/discover"


async def methods_seen(entry: dict[str, Any]) -> list[str]:
    """Connects, and has the server tell what it was sent."""
    async with Host({"shop": entry}, permission_mode="bypassPermissions", settings=QUICK_PROBE) as host:
        await host.ready(timeout=30)
        return (await host.call("mcp__shop__seen")).raise_for_error().text.split()


async def revision_of(entry: dict[str, Any]) -> str | None:
    async with Host({"shop": entry}) as host:
        return (await host.ready(timeout=30))["shop"].protocol_version


async def failure_of(entry: dict[str, Any]) -> HandshakeFailed:
    async with Host({"shop": entry}, settings=QUICK_PROBE) as host:
        view = (await host.ready(timeout=30))["shop"]
    assert view.status == "failed"
    assert isinstance(view.error, HandshakeFailed)
    return view.error


async def test_a_server_that_refuses_the_probe_is_probed_only_once(home: Path) -> None:
    entry = stdio_server("wrong_handshake.py", "method not found")
    assert (await methods_seen(entry))[:2] == [PROBE, "initialize"]
    verdicts = json.loads((home / ".dragoman" / "state" / "eras.json").read_text())
    assert [verdict["era"] for verdict in verdicts.values()] == ["legacy"]

    assert (await methods_seen(entry))[0] == "initialize"

    changed = {**entry, "env": {"ANYTHING": "else"}}
    assert PROBE in await methods_seen(changed), "another entry is another server"


async def test_a_server_that_ignores_the_probe_is_probed_once_by_each_host(home: Path) -> None:
    """It may only have been slow: what follows from a time-out is not written down."""
    entry = stdio_server("wrong_handshake.py", "silent on the probe")
    for _ in range(2):
        async with Host({"shop": entry}, permission_mode="bypassPermissions", settings=QUICK_PROBE) as host:
            await host.ready(timeout=30)
            assert (await host.call("mcp__shop__seen")).text.split()[:2] == [PROBE, "initialize"]
            await host.reconnect("shop")
            assert (await host.call("mcp__shop__seen")).text.split()[0] == "initialize"
    assert not (home / ".dragoman" / "state" / "eras.json").exists()


async def test_with_a_missing_or_damaged_file_of_eras_servers_are_probed_again(home: Path) -> None:
    entry = stdio_server("wrong_handshake.py", "method not found")
    memory = home / ".dragoman" / "state" / "eras.json"
    memory.parent.mkdir(parents=True)
    memory.write_bytes(b'{"not quite JSON\xff')
    assert PROBE in await methods_seen(entry)
    assert PROBE not in await methods_seen(entry)


async def test_a_server_that_changed_its_era_is_detected_despite_the_stored_era(tmp_path: Path) -> None:
    speaking = tmp_path / "revisions"
    entry = workshop("ours", "--speaking", speaking)
    speaking.write_text(" ".join(LEGACY_REVISIONS))
    assert await revision_of(entry) == LEGACY_REVISIONS[0]
    speaking.write_text(" ".join(MODERN_REVISIONS))
    assert await revision_of(entry) == MODERN_REVISIONS[0]
    speaking.write_text(" ".join(LEGACY_REVISIONS))
    assert await revision_of(entry) == LEGACY_REVISIONS[0]


async def test_a_process_that_exits_on_the_probe_is_started_again_without_it(tmp_path: Path) -> None:
    diary = tmp_path / "diary"
    entry = stdio_server("wrong_handshake.py", "exits on the probe", str(diary))
    assert PROBE not in await methods_seen(entry), "the second process was not probed"
    assert len(diary.read_text().split()) == 2
    await methods_seen(entry)
    assert len(diary.read_text().split()) == 3, "the next time it is started once, without a probe"


async def test_a_pinned_legacy_server_is_never_probed() -> None:
    for pin in ("legacy", "2025-06-18"):
        entry = stdio_server("wrong_handshake.py", "silent on the probe", protocol=pin)
        assert PROBE not in await methods_seen(entry)


@pytest.mark.parametrize(
    ("speaks", "pin", "words"),
    [
        ("2025-11-25", "2026-07-28", ("2026-07-28", "pinned")),
        ("2026-07-28", "2025-06-18", ("2025-06-18",)),
        ("2026-07-28", "legacy", ("2026-07-28",)),
        ("2025-11-25", "2024-11-05", ("2025-11-25", "2024-11-05")),
    ],
)
async def test_a_pinned_revision_that_the_server_does_not_support_is_explained(
    tmp_path: Path, speaks: str, pin: str, words: tuple[str, ...]
) -> None:
    speaking = tmp_path / "revisions"
    speaking.write_text(speaks)
    error = await failure_of(workshop("ours", "--speaking", speaking, protocol=pin))
    for word in words:
        assert word in str(error)
    assert error.hint
