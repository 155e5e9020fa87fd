"""T109: A server that sends a flood of tiny messages is disconnected, and the others are hardly affected."""

import asyncio
import statistics
import subprocess
import sys
from collections.abc import Iterator

import pytest

from dragoman.errors import ConnectionLost
from tests.servers import stdio_server
from tests.servers.web import websocket
from tests.servers.web.tools import LIST_CHANGED
from tests.torture.bystander_host import at_once, until
from tests.torture.child_programs import program_environment

RATE = "DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND"


def reason(limit: int, rate: int) -> str:
    return (
        f"it sends too many messages: more than {limit} that answer no request, "
        f"faster than {rate} a second; if that is normal for this server, raise {RATE}"
    )


REASON = reason(100_000, 10_000)
STALL_UNITS = 40
"""How many times as long as a fixed amount of work the loop may be blocked; see `Pulse`."""
STALL_SECONDS = 0.1
SLOWER = 30
"""How many times as long as without a flood the median call of another server may take …"""
SLOW_SECONDS = 0.05
"""… or this long, whichever is more."""

LINES = {
    "empty objects": "{}\n",
    "blank lines": "\n",
    "lines of blanks": " \n",
    "log lines": "[info] still alive\n",
    "replies to nobody": '{"jsonrpc":"2.0","id":1,"result":{}}\n',
    "notices": '{"jsonrpc":"2.0","method":"x"}\n',
    "changes of the list": '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n',
    "pings": '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
}


async def is_cut_off(a, text: str, **more: str) -> None:
    """Floods until the server is disconnected; the bystander is called all the time, and the loop is
    measured."""
    before = len(a.bystander.latencies)
    with pytest.raises(ConnectionLost) as caught:
        async with at_once(30):
            await a.call("flood", text=text, seconds=60, **more)
    assert caught.value.cause == REASON
    meanwhile = a.bystander.latencies[before:]
    await until(lambda: a.view.status == "failed")
    assert a.view.reason == REASON
    calm = statistics.median(a.bystander.calm_seconds)
    if meanwhile:
        assert statistics.median(meanwhile) < max(SLOWER * calm, SLOW_SECONDS)
    assert a.pulse.longest_work_seconds < max(STALL_SECONDS, STALL_UNITS * a.pulse.unit_seconds)


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize("text", LINES.values(), ids=LINES.keys())
async def test_t109_a_local_server_that_floods_is_disconnected(bystander_host, text):
    async with bystander_host(stdio_server("floods.py")) as a:
        await is_cut_off(a, text)


@pytest.fixture
def flooding() -> Iterator[object]:
    """`flooding("ws")`: the URL of a server in a process of its own."""
    started: list[subprocess.Popen[str]] = []

    def start(kind: str) -> str:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.web.flooding", kind],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=program_environment(),
        )
        started.append(process)
        assert process.stdout is not None
        return process.stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


CHUNK = "%x\r\n%s\r\n"


def chunked(text: str) -> str:
    """Many events in one chunk of a response that HTTP sends in chunks."""
    piece = text * (4096 // len(text))
    return CHUNK % (len(piece), piece)


FRAMES = {
    ("ws", "empty objects"): "\x81\x02{}",
    ("ws", "empty frames"): "\x81\x00",
    ("ws", "pings"): "\x89\x00",
    ("ws", "pongs"): "\x8a\x00",
    ("sse", "empty objects"): chunked("data: {}\n\n"),
    ("sse", "comments"): chunked(":\n"),
    ("sse", "blank lines"): chunked("\n"),
    ("sse", "other events"): chunked("event: x\ndata: y\n\n"),
    ("sse", "ids alone"): chunked("id: 1\n\n"),
    ("http", "empty objects"): "data: {}\n\n",
    ("http", "comments"): ":\n",
}


@pytest.mark.requirement("TRN-9")
@pytest.mark.parametrize(("kind", "what"), FRAMES)
async def test_t109_a_remote_server_that_floods_is_disconnected(bystander_host, flooding, kind, what):
    async with bystander_host({"type": kind, "url": flooding(kind)}) as a:
        await is_cut_off(a, FRAMES[kind, what])


async def test_t109_many_replies_and_progress_notifications_are_not_a_flood(bystander_host):
    """With the lowest limit: messages that belong to a request are not counted."""
    others = {"counts": stdio_server("floods_progress.py")}
    async with bystander_host(stdio_server("well_behaved.py"), others=others, settings={RATE: 100}) as a:

        async def call_often(number: int) -> None:
            for _ in range(100):
                assert await a.call("echo", message=str(number)) == str(number)

        async with at_once(30):
            await asyncio.gather(*(call_often(number) for number in range(64)))
        async with at_once(30):
            outcome = await a.host.call(
                "mcp__counts__report",
                {"kind": "growing", "count": 20_000},
                on_progress=lambda _: None,
                timeout_seconds=30,
            )
        assert outcome.text == "done"
        assert {view.status for view in a.host.servers.values()} == {"connected"}


async def test_t109_the_limit_is_configurable_and_a_burst_below_it_is_allowed(bystander_host):
    async with (
        websocket() as server,
        bystander_host({"type": "ws", "url": server.url}, settings={RATE: 1000}) as a,
    ):
        await push_often(server, 16, lambda: False)
        assert await a.call("echo", text="fine") == "fine"
        assert a.view.status == "connected"
        await push_often(server, 200, lambda: a.view.status == "failed")
        await until(lambda: a.view.status == "failed", 30)
        assert a.view.reason == reason(10_000, 1_000)


async def push_often(server, times: int, enough) -> None:
    for _ in range(times):
        for _ in range(500):
            server.push(LIST_CHANGED)
        await asyncio.sleep(0.005)
        if enough():
            break
