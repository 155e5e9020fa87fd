"""T101: A syntax error during an edit of a file stops no running server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.load import load
from dragoman.config.model import fingerprint
from dragoman.config.scopes import Sources
from dragoman.events import ConfigurationChanged, Event
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import seen, servers, write

pytestmark = pytest.mark.requirement("CFG-11")

SECONDS = 30.0
PLACES = {
    "user": ".dragoman/settings.json",
    "project": "work/.mcp.json",
    "outer project": ".mcp.json",
    "local": "work/.dragoman/settings.local.json",
    "plugin": ".dragoman/plugins/p/.mcp.json",
    "managed": "managed/managed-mcp.json",
}
ERRORS: dict[str, Callable[[str], str]] = {
    "cut off": lambda text: text[:-3],
    "empty": lambda text: "",
    "a comma": lambda text: text.replace("}", ",}", 1),
    "servers that are null": lambda text: '{"mcpServers": null}',
    "servers in a list": lambda text: '{"mcpServers": []}',
}


def put(home: Path, place: str, **entries: Any) -> Path:
    """Writes servers into the file, approved where that is needed."""
    file = write(home / PLACES[place], servers(**entries))
    if "project" in place or place == "local":
        for name in entries:
            projects.approve(file, name)
    return file


@asynccontextmanager
async def watching() -> AsyncIterator[tuple[Host, Callable[[str], Any]]]:
    """A host that follows changes, and a function that waits for a problem with this text (or for none,
    if empty)."""
    async with Host.configured(watch=True, permission_mode="bypassPermissions") as host:
        events = host.events()
        await host.ready(timeout=SECONDS)

        async def told(words: str) -> ConfigurationChanged:
            async with asyncio.timeout(SECONDS):
                async for event in events:
                    if _is_reported(event, words):
                        return event
            raise AssertionError("the host was closed")

        yield host, told


def _is_reported(event: Event, words: str) -> bool:
    if not isinstance(event, ConfigurationChanged):
        return False
    return any(words in problem for problem in event.problems) if words else event.problems == ()


@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("place", PLACES)
async def test_t101_the_servers_of_a_file_with_an_error_keep_running(home: Path, place: str, error: str):
    file = put(home, place, box=stdio_server("well_behaved.py"))
    before = file.read_text()
    async with watching() as (host, told):
        pid = host.servers["box"].pid
        assert pid is not None

        file.write_text(ERRORS[error](before))
        event = await told(str(file))

        assert (event.added, event.removed, event.changed) == ((), (), ())
        assert any("the version read before stays in effect" in problem for problem in event.problems)
        assert host.servers["box"].pid == pid
        assert (await host.call("mcp__box__echo", {"message": "x"})).text == "x"

        file.write_text(before)
        await told("")
        assert host.servers["box"].pid == pid


@pytest.mark.parametrize("place", PLACES)
async def test_t101_when_the_file_can_be_read_again_its_content_applies(home: Path, place: str):
    file = put(
        home, place, box=stdio_server("well_behaved.py"), other=stdio_server("well_behaved.py", "other")
    )
    async with watching() as (host, told):
        pid = host.servers["other"].pid
        file.write_text("{")
        await told(str(file))
        assert set(host.servers) == {"box", "other"}
        put(home, place, other=stdio_server("well_behaved.py", "other"))
        await told("")
        assert set(host.servers) == {"other"}
        assert host.servers["other"].pid == pid


@pytest.mark.parametrize("place", [place for place in PLACES if place != "managed"])
async def test_t101_a_server_can_be_started_again_meanwhile(home: Path, place: str):
    file = put(home, place, box=stdio_server("well_behaved.py"))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=SECONDS)
        pid = host.servers["box"].pid
        file.write_text("{")
        await host.reload()
        view = await host.reconnect("box")
        assert view.status == "connected"
        assert view.pid != pid


@pytest.mark.parametrize("place", PLACES)
async def test_t101_the_servers_of_a_deleted_file_are_removed(home: Path, place: str):
    file = put(home, place, box=stdio_server("well_behaved.py"))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=SECONDS)
        file.write_text("{")
        await host.reload()
        file.unlink()
        assert (await host.reload()).removed == ("box",)
        assert host.servers == {}


async def test_t101_the_servers_of_a_file_replaced_by_a_symlink_to_another_project_are_removed(home: Path):
    """That file is ignored, not unreadable."""
    file = put(home, "project", box=stdio_server("well_behaved.py"))
    other = write(home / "other" / ".mcp.json", servers(box=stdio_server("well_behaved.py")))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=SECONDS)
        file.unlink()
        file.symlink_to(other)
        assert (await host.reload()).removed == ("box",)


async def test_t101_changes_of_other_files_are_applied_meanwhile(home: Path):
    broken = put(home, "plugin", box=stdio_server("well_behaved.py"))
    put(home, "user", mine=stdio_server("well_behaved.py", "mine"))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=SECONDS)
        broken.write_text("{")
        put(
            home,
            "user",
            mine=stdio_server("well_behaved.py", "mine"),
            late=stdio_server("well_behaved.py", "late"),
        )
        assert (await host.reload()).added == ("late",)
        put(home, "user", late=stdio_server("well_behaved.py", "late"))
        assert (await host.reload()).removed == ("mine",)
        assert set(host.servers) == {"box", "late"}


async def test_t101_approvals_that_cannot_be_read_stop_no_approved_server(home: Path):
    put(home, "project", box=stdio_server("well_behaved.py"))
    async with Host.configured(permission_mode="bypassPermissions") as host:
        await host.ready(timeout=SECONDS)
        pid = host.servers["box"].pid
        answers = Sources.here().approvals_file
        before = answers.read_text()
        answers.write_text("{")
        assert (await host.reload()).is_empty
        assert host.servers["box"].pid == pid
        answers.write_text("{}")
        await host.reload()
        assert host.servers["box"].status == "pending"
        answers.write_text(before)


def test_t101_a_broken_copy_of_a_connector_list_stops_no_connector(home: Path):
    url = "https://127.0.0.1:1/list"
    projects.user(home, {"connectors": {"url": url}})
    kept = {"list": fingerprint(url), "servers": {"box": {"url": "https://box.example.com/mcp"}}}
    cache = write(Sources.here().connectors_cache, kept)
    before = seen()
    assert list(before.servers) == ["box"]
    cache.write_text("{")
    after = load(Sources.here(), before=before)
    assert list(after.servers) == ["box"]
    assert len(after.problems) == 1
    assert list(seen().servers) == []
