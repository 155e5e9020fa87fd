"""T152: a server that was used may finish its work before it is ended, without delaying others."""

import asyncio
from pathlib import Path

import pytest

from dragoman import Host
from tests.e2e.command import config
from tests.e2e.forked import Terminal
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once, until

pytestmark = pytest.mark.requirement("TRN-1")

PATIENT = {"DRAGOMAN_STOP_WAIT_MS": 60_000}


class Worker:
    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.gate, self.diary = folder / "gate", folder / name
        self.entry = stdio_server("finishes_its_work.py", str(self.gate), str(self.diary))

    @property
    def story(self) -> list[str]:
        return self.diary.read_text().splitlines() if self.diary.exists() else []


async def used(workers: list[Worker], **settings: int) -> Host:
    entries = {worker.name: worker.entry for worker in workers}
    host = Host(entries, settings={**PATIENT, **settings}, permission_mode="bypassPermissions")
    await host.__aenter__()
    await host.ready(timeout=30)
    for worker in workers:
        assert (await host.call(f"mcp__{worker.name}__echo", {"message": "x"})).text == "x"
    return host


async def test_t152_used_servers_finish_their_work_concurrently(tmp_path: Path):
    workers = [Worker(tmp_path, f"w{number}") for number in range(4)]
    host = await used(workers)
    closing = asyncio.create_task(host.close())
    await until(lambda: all(worker.story for worker in workers))
    assert not closing.done()
    workers[0].gate.touch()
    await closing
    assert [worker.story for worker in workers] == [["its input ended", "finished"]] * 4
    assert [view.pid for view in host.servers.values()] == [None] * 4


@pytest.mark.parametrize("how", ["close", "disable", "reconnect"])
async def test_t152_a_server_may_finish_its_work_however_it_is_closed(tmp_path: Path, how: str):
    worker = Worker(tmp_path, "w")
    host = await used([worker])
    ending = asyncio.create_task(
        {"close": host.close, "disable": host.disable, "reconnect": host.reconnect}[how](
            *(() if how == "close" else ("w",))
        )
    )
    await until(lambda: worker.story)
    worker.gate.touch()
    await ending
    assert worker.story == ["its input ended", "finished"]
    await host.close(now=True)


@pytest.mark.parametrize("is_closing", [False, True])
async def test_t152_an_immediate_close_does_not_wait_for_unfinished_work(tmp_path: Path, is_closing: bool):
    worker = Worker(tmp_path, "w")
    host = await used([worker])
    if is_closing:
        closing = asyncio.create_task(host.close())
        await until(lambda: worker.story)
    async with at_once():
        await host.close(now=True)
    if is_closing:
        await closing
    assert "finished" not in worker.story


async def test_t152_the_wait_for_a_server_has_a_limit(tmp_path: Path):
    worker = Worker(tmp_path, "w")
    host = await used([worker], DRAGOMAN_STOP_WAIT_MS=300)
    async with at_once():
        await host.close()
    assert worker.story == ["its input ended"]


async def test_t152_a_server_that_was_not_used_is_not_waited_for(tmp_path: Path):
    worker = Worker(tmp_path, "w")
    async with Host({"w": worker.entry}, settings=PATIENT) as host:
        assert (await host.ready(timeout=30))["w"].status == "connected"
        async with at_once():
            await host.close()
    assert "finished" not in worker.story


async def test_t152_child_processes_left_by_a_server_are_not_waited_for():
    async with Host(
        {"w": stdio_server("has_a_child.py", "orphaning")},
        settings=PATIENT,
        permission_mode="bypassPermissions",
    ) as host:
        await host.ready(timeout=30)
        await host.call("mcp__w__echo", {"message": "x"})
        async with at_once():
            await host.close()


@pytest.mark.slow
def test_t152_an_interactive_command_does_not_wait(tmp_path: Path):
    worker = Worker(tmp_path, "w")
    arguments = ("call", "mcp__w__echo", "message=hello", "--mcp-config", config(w=worker.entry))
    with Terminal(*arguments, env={"DRAGOMAN_STOP_WAIT_MS": "60000"}) as terminal:
        while not worker.story:
            assert terminal.process.poll() is None
        terminal.type(b"\x03")
        output = terminal.finish()
    assert "Traceback" not in output
    assert worker.story == ["its input ended"]
