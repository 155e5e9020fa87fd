"""Noticing that configuration has changed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.config.file_watch import changes, watched_folders
from dragoman.config.scopes import Sources
from tests.integration.desk import Desk

pytestmark = pytest.mark.slow


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


# --- which folders ---


@pytest.mark.requirement("CFG-11")
def test_the_folder_of_every_file_is_watched_or_the_nearest_that_exists(desk: Desk):
    assert watched_folders(Sources.here()) == {desk.home, desk.project}
    for path in (desk.user_file, desk.local_file, desk.managed_file, desk.plugin_file("tools")):
        path.parent.mkdir(parents=True)
    assert watched_folders(Sources.here()) == {
        desk.home,
        desk.project,
        desk.home / ".dragoman",
        desk.project / ".dragoman",
        desk.home / "managed",
        desk.home / ".dragoman" / "plugins",
        desk.home / ".dragoman" / "plugins" / "tools",
    }


def test_only_existing_folders_are_watched_also_if_a_file_is_in_the_path(desk: Desk):
    (desk.project / ".dragoman").write_text("a file")
    (desk.home / ".dragoman").mkdir()
    (desk.home / ".dragoman" / "plugins").write_text("a file")
    folders = watched_folders(Sources.here())
    assert all(folder.is_dir() for folder in folders)
    assert desk.project in folders


def test_with_given_servers_the_administrators_folder_is_among_the_watched(desk: Desk):
    desk.managed_file.parent.mkdir()
    assert desk.managed_file.parent in watched_folders(Sources.here(only_given=True))


# --- what is noticed ---


@asynccontextmanager
async def watching() -> AsyncIterator[asyncio.Event]:
    """An event that is set at every change; the watch is known to run when this begins."""
    noticed = asyncio.Event()
    sources = Sources.here()

    async def listen() -> None:
        async for _ in changes(sources):
            noticed.set()

    task = asyncio.create_task(listen())
    try:
        await _until_it_listens(sources.cwd / ".mcp.json", noticed)
        yield noticed
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _until_it_listens(file: Path, noticed: asyncio.Event) -> None:
    for number in range(40):
        file.write_text(f'{{"mcpServers": {{}}, "n": {number}}}')
        try:
            await asyncio.wait_for(noticed.wait(), 0.25)
        except TimeoutError:
            continue
        await _quiet(noticed)
        return
    pytest.fail("the watch never began")


async def _quiet(noticed: asyncio.Event) -> None:
    """Until nothing more is told about what was done so far."""
    while True:
        noticed.clear()
        try:
            await asyncio.wait_for(noticed.wait(), 0.4)
        except TimeoutError:
            return


def write(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"mcpServers": {"new": {"command": "x"}}}')


@pytest.mark.requirement("CFG-11")
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(lambda desk: desk.user_file, id="user"),
        pytest.param(lambda desk: desk.local_file, id="local"),
        pytest.param(lambda desk: desk.managed_file, id="managed"),
        pytest.param(lambda desk: desk.approvals_file, id="approvals"),
        pytest.param(lambda desk: desk.home / ".mcp.json", id="outer"),
        pytest.param(lambda desk: desk.plugin_file("new"), id="plugin"),
    ],
)
@pytest.mark.parametrize("folders", ["no folder", "a folder"])
async def test_a_file_that_appears_is_noticed(desk: Desk, file: Callable[[Desk], Path], folders: str):
    path = file(desk)
    if folders == "a folder":
        (desk.home / ".dragoman" / "plugins").mkdir(parents=True)
        (desk.home / "managed").mkdir()
        (desk.project / ".dragoman").mkdir()
    async with watching() as noticed:
        write(path)
        await asyncio.wait_for(noticed.wait(), 5)


@pytest.mark.requirement("CFG-11")
async def test_a_plugin_that_appears_beside_another_is_noticed(desk: Desk):
    write(desk.plugin_file("old"))
    async with watching() as noticed:
        write(desk.plugin_file("new"))
        await asyncio.wait_for(noticed.wait(), 5)


@pytest.mark.requirement("CFG-11")
async def test_a_file_in_a_folder_created_later_is_noticed_when_it_changes_again(desk: Desk):
    async with watching() as noticed:
        write(desk.local_file)
        await asyncio.wait_for(noticed.wait(), 5)
        await _quiet(noticed)
        desk.local_file.write_text("{}")
        await asyncio.wait_for(noticed.wait(), 5)


@pytest.mark.requirement("CFG-11")
async def test_files_that_are_not_configuration_cause_no_reload(desk: Desk):
    (desk.home / ".dragoman").mkdir()
    async with watching() as noticed:
        (desk.project / "notes.txt").write_text("x")
        (desk.home / ".dragoman" / "settings.json.tmp").write_text("x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(noticed.wait(), 0.6)


@pytest.mark.requirement("CFG-11")
async def test_a_removed_file_is_noticed(desk: Desk):
    write(desk.user_file)
    async with watching() as noticed:
        desk.user_file.unlink()
        await asyncio.wait_for(noticed.wait(), 5)
