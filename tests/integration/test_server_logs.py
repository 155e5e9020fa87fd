"""The log of a server: what is in it, at which level, and what it never contains."""

import asyncio
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.connections.server_log import path_of, read
from dragoman.errors import ConfigError
from dragoman.events import ServerLogged
from tests.integration.waiting import until

pytestmark = pytest.mark.requirement("ASK-6")

SERVERS = Path(__file__).parents[1] / "servers"
SECRET = "c4n4ry-t0ken-5512"


def entry(era: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", str(SERVERS / "logs_by_level.py"), era], **more}


def lines(*sources: str) -> list[tuple[str, str, str]]:
    found = [line for line in read(path_of("s")) if line["source"] in sources]
    return [(line["level"], line.get("logger", ""), line["text"]) for line in found]


async def said(host: Host, level: str, text: str) -> str:
    """What is said; the level that holds at the server."""
    return (await host.call("mcp__s__say", {"level": level, "text": text})).text


def host_of(era: str, **more: Any) -> Host:
    return Host({"s": entry(era, **more)}, permission_mode="bypassPermissions", server_logs=True)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_messages_of_the_configured_level_are_kept_without_a_listener(home: Path, era: str):
    async with host_of(era, logLevel="warning") as host:
        await host.ready()
        await until(lambda: _level(host, "warning"))
        await said(host, "info", "too quiet")
        await said(host, "error", "loud enough")
    assert lines("message") == [("error", "desk", "loud enough")]
    assert lines("stderr") == [("info", "", "stderr: too quiet"), ("info", "", "stderr: loud enough")]


async def _level(host: Host, level: str) -> bool:
    return (await host.call("mcp__s__level")).text == level


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_level_can_be_changed_and_applies_after_a_reconnect(home: Path, era: str):
    async with host_of(era) as host:
        await host.ready()
        assert await said(host, "emergency", "nobody asked") == "None"
        await host.set_log_level("s", "debug")
        assert await said(host, "debug", "first") == "debug"
        await host.reconnect("s")
        await until(lambda: _level(host, "debug"))
        await said(host, "debug", "second")
    assert lines("message") == [("debug", "desk", "first"), ("debug", "desk", "second")]


async def test_messages_are_events_too_with_level_and_logger(home: Path):
    async with host_of("legacy") as host:
        await host.ready()
        await host.set_log_level("s", "info")
        events = host.events()
        await said(host, "notice", "hello")
        async with asyncio.timeout(10):
            async for event in events:
                if isinstance(event, ServerLogged):
                    assert event == ServerLogged(
                        server="s", level="notice", text="hello", logger="desk", is_message=True
                    )
                    break


async def test_the_log_has_no_secrets_and_no_control_characters_and_is_private(home: Path):
    async with host_of("legacy", env={"API_TOKEN": SECRET}, logLevel="debug") as host:
        await host.ready()
        await until(lambda: _level(host, "debug"))
        await said(host, "info", f"\x1b[31m{SECRET}\nnext")
    file = path_of("s")
    assert SECRET not in file.read_text()
    assert lines("message") == [("info", "desk", "\\x1b[31m[secret]\\nnext")]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


async def test_changes_of_the_connection_are_in_the_log(home: Path):
    async with host_of("legacy") as host:
        await host.ready()
        await asyncio.gather(host.call("mcp__s__die"), return_exceptions=True)
        await until(lambda: host.servers["s"].status == "connected")
    found = lines("connection")
    assert [text for _, _, text in found[:3]] == ["connecting", "handshaking", "connected"]
    assert any(level == "warning" and text.startswith("reconnecting") for level, _, text in found)


async def test_a_host_of_given_servers_writes_no_log_unless_asked(home: Path):
    async with Host({"s": entry("legacy")}) as host:
        await host.ready()
    assert not path_of("s").exists()


async def test_a_level_that_does_not_exist_is_refused(home: Path):
    async with host_of("legacy") as host:
        with pytest.raises(ConfigError, match="there is no log level 'loud'"):
            await host.set_log_level("s", "loud")  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="there is no server 'other'"):
            await host.set_log_level("other", "info")


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("when", ["start", "greeting"])
async def test_a_process_that_ends_at_the_probe_and_is_started_again_is_in_the_log(home: Path, when: str):
    arguments = ["-S", "-E", str(SERVERS / "exits.py"), when, "3"]
    async with Host({"s": {"command": sys.executable, "args": arguments}}, server_logs=True) as host:
        assert (await host.ready())["s"].status == "failed"
    again = "it ended before it answered server/discover; it is started again and sent initialize"
    output = [("info", "", "opening the database"), ("info", "", "\\x1b[31mdisk is \ufffd full\\x1b[0m")]
    assert lines("stderr", "host") == [*output, ("info", "", again), *output]


async def test_a_process_that_ends_later_has_no_such_line(home: Path):
    arguments = ["-S", "-E", str(SERVERS / "exits.py"), "list", "3"]
    async with Host({"s": {"command": sys.executable, "args": arguments}}, server_logs=True) as host:
        await host.ready()
    assert lines("host") == []
