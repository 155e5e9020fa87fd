"""One measurement in a fresh process: `python -m bench.worker CASE CLIENT SECONDS` prints JSON.

Only the client under measurement is imported. In the cases about speed, client and server get fixed places:
one core together when they take turns (latency), a core each when they can overlap; otherwise the
scheduler's choice between the two would decide the result. All other cases use every core.
"""

import asyncio
import atexit
import gc
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

SERVERS = Path(__file__).parent / "servers"
MINIMAL = [sys.executable, "-S", "-E", str(SERVERS / "minimal.py")]
SDK = [sys.executable, str(SERVERS / "sdk_server.py")]
MINIMAL_HTTP = [sys.executable, "-S", "-E", str(SERVERS / "minimal_http.py")]
SDK_HTTP = [sys.executable, str(SERVERS / "sdk_http.py")]
IN_FLIGHT = 64
UNAVAILABLE = 3  # exit status: this client is not installed


def cpu_seconds() -> float:
    usage = getrusage(RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def pin(apart: bool) -> list[str]:
    """Settle this process on one core; return the option that puts the server on the same or another one."""
    if not hasattr(os, "sched_setaffinity"):
        return []
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[-1]})
    return ["--cpu", str(cores[0] if apart else cores[-1])]


async def connected(client: Any, command: list[str]) -> None:
    await client.connect([command])
    if await client.call("hello") != "hello":
        raise RuntimeError("the echo is wrong")


async def all_arrived(client: Any, sent: int) -> None:
    seen = await client.count()
    if seen != sent:
        raise RuntimeError(f"{sent} calls sent, {seen} seen by the server")


async def in_turn(client: Any, calls: int) -> list[float]:
    """Microseconds of each of so many calls, one after the other, sorted."""
    times = []
    for _ in range(calls):
        start = time.perf_counter_ns()
        await client.call("hello")
        times.append((time.perf_counter_ns() - start) / 1000)
    return sorted(times)


async def in_flight(client: Any, calls: int) -> tuple[float, float]:
    """Seconds and CPU seconds of so many calls by 64 workers."""
    left = calls

    async def work() -> None:
        nonlocal left
        while left:
            left -= 1
            await client.call("hello")

    cpu, start = cpu_seconds(), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(IN_FLIGHT)))
    return time.perf_counter() - start, cpu_seconds() - cpu


async def latency(client: Any, seconds: float) -> dict[str, float]:
    await connected(client, MINIMAL + pin(apart=False))
    warm = await in_turn(client, 200)
    calls = max(500, int(seconds / sum(warm) * 200 * 1e6))
    times = await in_turn(client, calls)
    await all_arrived(client, 1 + 200 + calls)
    return {"median_us": times[calls // 2], "p99_us": times[calls * 99 // 100]}


async def throughput(client: Any, seconds: float, server: list[str] = MINIMAL) -> dict[str, float]:
    await connected(client, server + pin(apart=True))
    warm, _ = await in_flight(client, 640)
    calls = max(500, int(seconds / warm * 640))
    wall, cpu = await in_flight(client, calls)
    await all_arrived(client, 1 + 640 + calls)
    return {"calls_per_s": calls / wall, "cpu_us": cpu / calls * 1e6}


async def pipeline(client: Any, seconds: float) -> dict[str, float]:
    return await throughput(client, seconds)


async def sdk_server(client: Any, seconds: float) -> dict[str, float]:
    numbers = await throughput(client, seconds, SDK)
    times = await in_turn(client, 200)
    return {**numbers, "median_us": times[100]}


async def over_http(client: Any, seconds: float, server: list[str]) -> dict[str, float]:
    process = subprocess.Popen(server + pin(apart=True), stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        await connected(client, [f"http://127.0.0.1:{port}/mcp"])
        times = await in_turn(client, 200)
        warm, _ = await in_flight(client, 320)
        calls = max(300, int(seconds / warm * 320))
        wall, cpu = await in_flight(client, calls)
        await all_arrived(client, 1 + 200 + 320 + calls)
        return {"calls_per_s": calls / wall, "cpu_us": cpu / calls * 1e6, "median_us": times[100]}
    finally:
        process.kill()


async def http(client: Any, seconds: float) -> dict[str, float]:
    return await over_http(client, seconds, MINIMAL_HTTP)


async def http_sse(client: Any, seconds: float) -> dict[str, float]:
    return await over_http(client, seconds, [*MINIMAL_HTTP, "--sse", "1"])


async def http_sdk(client: Any, seconds: float) -> dict[str, float]:
    return await over_http(client, seconds, SDK_HTTP)


async def http_sdk_sse(client: Any, seconds: float) -> dict[str, float]:
    return await over_http(client, seconds, [*SDK_HTTP, "--sse", "1"])


async def connect(client: Any, seconds: float) -> dict[str, float]:
    numbers = {}
    await client.connect([MINIMAL])  # warm: what is imported or started on first use
    await client.close()
    for servers in (1, 10, 50):
        cpu, start = cpu_seconds(), time.perf_counter()
        await client.connect([MINIMAL] * servers)
        numbers[f"ms_{servers}"] = (time.perf_counter() - start) * 1000
        numbers["cpu_ms"] = (cpu_seconds() - cpu) * 1000
        if servers < 50:
            await client.close()
    return numbers


def memory_kb(*fields: str) -> int:
    gc.collect()
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.split(":")[0] in fields)


async def memory(client: Any, seconds: float) -> dict[str, float]:
    await connected(client, MINIMAL)
    base, private = memory_kb("Rss"), memory_kb("Private_Dirty")
    more = type(client)()
    await more.connect([MINIMAL] * 49)
    per_connection = (memory_kb("Private_Dirty") - private) / 49
    await more.close()
    return {"base_mb": base / 1000, "per_connection_kb": per_connection}


async def tools(client: Any, seconds: float) -> dict[str, float]:
    await connected(client, MINIMAL)
    await client.close()
    start = time.perf_counter()
    await client.connect([[*MINIMAL, "--tools", "10000"]])
    found = await client.list_tools()
    milliseconds = (time.perf_counter() - start) * 1000
    if found != 10_000:
        raise RuntimeError(f"{found} tools instead of 10 000")
    return {"ms": milliseconds}


def long_list(count: int) -> bytes:
    """A reply to `tools/list` as an ordinary server would send it, only longer."""
    schema = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where to look, relative to the root"},
            "limit": {"type": "integer", "minimum": 1, "default": 10},
            "mode": {"type": "string", "enum": ["fast", "thorough"]},
        },
        "required": ["path"],
        "additionalProperties": False,
    }
    about = "Looks through part {} of the archive and returns what it finds. Use it when nothing else fits."
    tools = [
        {
            "name": f"search_part_{number}",
            "title": f"Search part {number}",
            "description": about.format(number),
            "inputSchema": schema,
            "annotations": {"readOnlyHint": True},
        }
        for number in range(count)
    ]
    reply = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": tools}}
    return json.dumps(reply).encode()


async def catalogue(client: Any, seconds: float) -> dict[str, float]:
    pin(apart=False)
    reply, times = long_list(10_000), []
    for _ in range(1 + (5 if seconds >= 1 else 3)):
        gc.collect()
        start = time.perf_counter()
        found = await client.parse_tools(reply)
        times.append((time.perf_counter() - start) * 1000)
        if found != 10_000:
            raise RuntimeError(f"{found} tools instead of 10 000")
    client.close = _nothing_to_close
    return {"ms": median(times[1:])}


async def _nothing_to_close() -> None:
    """No server was started."""


async def timed_result(client: Any, megabytes: int) -> float:
    start = time.perf_counter()
    length = await client.big(megabytes * 1_000_000)
    milliseconds = (time.perf_counter() - start) * 1000
    if length != megabytes * 1_000_000:
        raise RuntimeError(f"{length} characters instead of {megabytes} MB")
    return milliseconds


async def results(client: Any, seconds: float) -> dict[str, float]:
    await connected(client, MINIMAL + pin(apart=True))
    small = sorted([await timed_result(client, 1) for _ in range(5)])[2]
    return {"ms_1": small, "ms_16": await timed_result(client, 16)}


async def results_64(client: Any, seconds: float) -> dict[str, float]:
    await connected(client, MINIMAL + pin(apart=True))
    return {"ms_64": await timed_result(client, 64)}


def program(name: str) -> list[str]:
    if name == "dragoman":
        script = Path(sys.executable).with_name("dragoman")
        return [str(script)] if script.exists() else [sys.executable, "-m", "dragoman"]
    if name == "version":
        return [*program("dragoman"), "--version"]
    if name == "list":
        return [*program("dragoman"), "mcp", "list", "--no-health", *furnished_home()]
    codes = {"nothing": "pass", "import Host": "from dragoman import Host"}
    return [sys.executable, "-c", codes.get(name, name)]


def furnished_home() -> list[str]:
    """Moves this process to a home with 200 servers in five scopes; what the command needs besides."""
    home = Path(tempfile.mkdtemp(prefix="dragoman-bench-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    project = home / "project"
    files = {
        "plugin": home / ".dragoman/plugins/one/.mcp.json",
        "user": home / ".dragoman/settings.json",
        "project": project / ".mcp.json",
        "local": project / ".dragoman/settings.local.json",
        "dynamic": home / "given.json",
    }
    for scope, path in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        local = {f"{scope}-{n}": {"command": "npx", "args": ["-y", f"{scope}-{n}"]} for n in range(20)}
        remote = {f"{scope}-far-{n}": {"url": f"https://{scope}{n}.example.com/mcp"} for n in range(20)}
        path.write_text(json.dumps({"mcpServers": local | remote}))
    os.environ |= {"HOME": str(home), "DRAGOMAN_MANAGED_DIR": str(home / "managed")}
    os.environ.pop("DRAGOMAN_CONFIG_DIR", None)
    os.chdir(project)
    return ["--mcp-config", str(files["dynamic"])]


def start_up(name: str, runs: int) -> dict[str, float]:
    """Milliseconds of a fresh process, alternating with a bare interpreter."""

    def milliseconds(command: list[str]) -> float:
        start = time.perf_counter()
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if done.returncode:
            words = done.stderr.decode()
            sys.exit(
                UNAVAILABLE if re.search("ImportError|ModuleNotFoundError|No module named", words) else words
            )
        return (time.perf_counter() - start) * 1000

    measured, bare = program(name), program("nothing")
    pairs = [(milliseconds(measured), milliseconds(bare)) for _ in range(runs + 1)][1:]
    whole, net = sorted(ours for ours, _ in pairs), sorted(ours - bare for ours, bare in pairs)
    return {"ms": whole[runs // 2], "net_ms": net[runs // 2]}


OF_SIGN_IN = [
    *("keyring", "joserfc", "cryptography", "segno"),
    *(
        f"dragoman.auth.{name}"
        for name in (
            *("assertions", "authorization", "callback", "client_secrets", "device", "discovery", "dpop"),
            *("grants", "http", "lock", "registration", "revocation", "sign_in", "token_endpoint", "xaa"),
            *("stores.file", "stores.keyring"),
        )
    ),
]
"""What a host whose servers need no sign-in has no use for."""
LIST = "from dragoman.cli.main import main; sys.argv = ['dragoman', *{words}]; main()"
CONNECT = """
import asyncio
from bench.clients.host import Client
from bench.worker import memory_kb

async def main():
    client = Client()
    await client.connect([[{url!r}]])
    assert await client.call("hello") == "hello"
    print(memory_kb("Rss") / 1000)
    await client.close()

asyncio.run(main())
"""


def sign_in(name: str, runs: int) -> dict[str, float]:
    """What a host without sign-ins costs, and what it costs where the modules of sign-in cannot be loaded."""
    blocked = OF_SIGN_IN if name == "without sign-in" else []
    begin = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}));"

    def measured(code: str) -> tuple[float, str]:
        start = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", begin + code], capture_output=True, text=True)
        if done.returncode:
            sys.exit(done.stderr)
        return (time.perf_counter() - start) * 1000, done.stdout

    def milliseconds(code: str) -> float:
        return median([measured(code)[0] for _ in range(runs + 1)][1:])

    server = subprocess.Popen(MINIMAL_HTTP, stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().decode().strip()}/mcp"
        megabytes = median([float(measured(CONNECT.format(url=url))[1]) for _ in range(runs)])
    finally:
        server.kill()
    numbers = {"import_ms": milliseconds("from dragoman import Host"), "memory_mb": megabytes}
    words = ["mcp", "list", "--no-health", *furnished_home()]
    return {**numbers, "list_ms": milliseconds(LIST.format(words=words))}


async def run(case: str, name: str, seconds: float) -> dict[str, float]:
    client = importlib.import_module(f"bench.clients.{name}").Client()
    numbers = await globals()[case.replace("-", "_")](client, seconds)
    await client.close()
    return numbers


def main() -> None:
    case, name, seconds = sys.argv[1:]
    try:
        if case in ("import", "sign-in"):
            start = start_up if case == "import" else sign_in
            numbers = start(name, 5 if float(seconds) >= 1 else 3)
        else:
            numbers = asyncio.run(run(case, name, float(seconds)))
    except ImportError as error:
        print(error, file=sys.stderr)
        sys.exit(UNAVAILABLE)
    print(json.dumps(numbers))


if __name__ == "__main__":
    main()
