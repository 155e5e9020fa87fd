"""Hooks that are programs and addresses: what they are given, what they decide, and all they can do wrong."""

import asyncio
import json
import os
import shlex
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.errors import InvalidArguments, PermissionRefused
from dragoman.events import HookReported
from dragoman.hooks import commands
from dragoman.hooks.active import ActiveHooks, HookSession
from dragoman.hooks.declared import CommandHook, Hook, HttpHook, hook
from dragoman.hooks.events import EVENTS
from dragoman.hooks.merging import After, Before
from dragoman.hooks.verdicts import CONTEXT_LIMIT, HookDecision
from dragoman.permissions.checker import names_of
from dragoman.transports.orphans import group_members
from tests.integration.waiting import until
from tests.integration.watched import WatchedServer
from tests.unit.fakes import tool
from tests.unit.transports.sinks import open_files, other_tasks, site

pytestmark = pytest.mark.slow

TOOL = tool(server="gh", name="list")
PYTHON = shlex.quote(sys.executable)


class Desk:
    """Hooks, and what was told of them."""

    def __init__(self, *hooks: Hook, environ: dict[str, str] | None = None) -> None:
        self.reports: list[str] = []
        self.hooks = ActiveHooks(
            hooks,
            HookSession("s1", os.getcwd(), lambda: "default", environ or dict(os.environ)),
            names_of,
            lambda report: self.reports.append(report.text),
        )

    async def __aenter__(self) -> "Desk":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.hooks.close()

    async def before(self, arguments: dict[str, Any] | None = None) -> Before:
        return await self.hooks.before_call(TOOL, {} if arguments is None else arguments, call_id="use-1")


def runs(command: str, event: str = "PreToolUse", **more: Any) -> Hook:
    return Hook(event=event, what=CommandHook(command), name="h", **more)


def python(code: str) -> str:
    return f"{PYTHON} -c {shlex.quote(code)}"


def prints(document: Any) -> str:
    return f"echo {shlex.quote(json.dumps(document))}"


def decides(**specific: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **specific}}


@pytest.fixture(autouse=True)
def nothing_is_left_open() -> Any:
    before = open_files()
    yield
    assert open_files() <= before + 2  # the loop's own


# --- programs ---


@pytest.mark.requirement("PRM-5")
async def test_a_command_gets_the_event_as_json_and_the_persons_environment(home: Path):
    async with Desk(runs("cat > given.json; env > env.txt"), environ={**os.environ, "MINE": "1"}) as desk:
        await desk.before({"text": "\x1b[31mé\u202e\x00", "half": "\ud800"})
        assert desk.reports == []
    given = json.loads(Path("given.json").read_text())
    assert given == {
        "session_id": "s1",
        "transcript_path": "",
        "cwd": str(home / "work"),
        "hook_event_name": "PreToolUse",
        "permission_mode": "default",
        "tool_name": "mcp__gh__list",
        "tool_input": {"text": "\x1b[31mé\u202e\x00", "half": "\ud800"},
        "mcp_server_name": "gh",
        "mcp_tool_name": "list",
        "tool_use_id": "use-1",
    }
    environment = Path("env.txt").read_text().splitlines()
    for line in ("MINE=1", "DRAGOMAN_HOOK_EVENT=PreToolUse", "DRAGOMAN_SESSION_ID=s1"):
        assert line in environment
    assert f"DRAGOMAN_PROJECT_DIR={home / 'work'}" in environment


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", Before({})),
        ("echo hello", Before({})),
        ("echo '[1]'", Before({})),
        ("echo no way >&2; exit 2", Before({}, HookDecision("deny", "no way", "h"))),
        ("echo '{}'; exit 2", Before({}, HookDecision("deny", "a hook refuses it", "h"))),
        (
            prints(decides(permissionDecision="deny", permissionDecisionReason="why")),
            Before({}, HookDecision("deny", "why", "h")),
        ),
        (prints(decides(updatedInput={"a": 1})), Before({"a": 1})),
        (prints(decides(additionalContext="c")), Before({}, None, ("c",))),
        ("printf '\\357\\273\\277{}'", Before({})),
    ],
)
async def test_exit_code_and_output_decide(command: str, expected: Before):
    async with Desk(runs(command)) as desk:
        assert await desk.before() == expected
        assert desk.reports == []


DEEP = python("print('{\"a\":' + '[' * 100000 + ']' * 100000 + '}')")
FAILURES = [
    ("exit 1", "it ended with exit code 1"),
    ("echo first >&2; printf '\\033[31mlast\\n' >&2; exit 3", r"it ended with exit code 3: \x1b[31mlast"),
    ("exec no-such-program", "it ended with exit code 127"),
    ("kill -9 $$", "it ended with signal 9"),
    ("echo '{'", "its JSON cannot be read"),
    ('printf \'{"a": "\\377"}\'', "its JSON cannot be read: invalid UTF-8"),
    (DEEP, "its JSON cannot be read: nested too deeply"),
    (prints(decides(updatedInput=[1])), '"updatedInput" must be an object'),
    (prints(decides(permissionDecision="Allow")), '"permissionDecision" must be one of'),
    (f"echo debug; {prints(decides(permissionDecision='allow'))}", "it wrote something before its JSON"),
    ("yes", "it printed more than 1024 kB"),
    ("yes >&2", "it printed more than 1024 kB"),
    (python("print('{' + ' ' * 2000000 + '}')"), "it printed more than 1024 kB"),
    ("sleep 60", "it took longer than 0.5 s"),
    ("trap '' INT TERM; while :; do sleep 1; done", "it took longer than 0.5 s"),
    ("a\0b", "it could not be started"),
]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(("command", "problem"), FAILURES, ids=[problem for _, problem in FAILURES])
async def test_a_failing_command_is_reported_and_blocks_only_with_on_error_block(command: str, problem: str):
    seconds = 0.5 if "0.5" in problem else 20.0
    async with Desk(runs(command, timeout_seconds=seconds)) as desk:
        assert await desk.before() == Before({})
        assert len(desk.reports) == 1
        assert problem in desk.reports[0]
    async with Desk(runs(command, timeout_seconds=seconds, blocks_on_error=True)) as desk:
        before = await desk.before()
        assert before.hook_decision is not None
        assert before.hook_decision.behaviour == "deny"


async def test_a_missing_folder_is_reported(home: Path):
    async with Desk(runs("true")) as desk:
        os.chdir(home)
        (home / "work").rmdir()
        await desk.before()
        assert desk.reports == ["it could not be started: no such file or directory"]


async def test_an_event_of_ten_megabytes_for_a_program_that_reads_nothing():
    async with Desk(runs("exit 0"), runs("exec <&-; exit 2")) as desk:
        before = await desk.before({"text": "x" * 10_000_000})
        assert before.hook_decision is not None
        assert desk.reports == []


async def test_an_event_of_ten_megabytes_for_a_program_that_reads_it():
    async with Desk(runs("wc -c >&2; exit 2")) as desk:
        before = await desk.before({"text": "x" * 10_000_000})
        assert before.hook_decision is not None
        assert int(before.hook_decision.reason) > 10_000_000


async def test_a_child_that_keeps_the_output_open_does_not_delay_the_call():
    async with Desk(runs(f"sleep 60 & {prints(decides(additionalContext='c'))}")) as desk:
        started = time.monotonic()
        assert (await desk.before()).context == ("c",)
        assert time.monotonic() - started < 5


async def pid_in(file: Path) -> int:
    await until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


TREE = "trap '' INT TERM; (trap '' INT TERM; sleep 60) & echo $$ > pid; sleep 60; sleep 60"


async def test_the_time_limit_ends_a_command_with_its_children(home: Path):
    async with Desk(runs(TREE, timeout_seconds=1)) as desk:
        await desk.before()
        assert desk.reports == ["it took longer than 1 s"]
        pid = int((home / "work" / "pid").read_text())
        await until(lambda: group_members(pid) == [])


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("others", [(), (runs("sleep 61"),)], ids=["alone", "among others"])
async def test_cancelling_the_call_ends_its_commands_at_once(home: Path, others: tuple[Hook, ...]):
    async with Desk(runs(TREE), *others) as desk:
        call = asyncio.create_task(desk.before())
        pid = await pid_in(home / "work" / "pid")
        started = time.monotonic()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - started < 10
        await until(lambda: group_members(pid) == [])
        assert other_tasks() == []


async def test_cancelling_while_a_command_is_being_started_leaves_nothing(home: Path):
    for turns in range(12):
        async with Desk(runs("sleep 60 & sleep 60")) as desk:
            call = asyncio.create_task(desk.before())
            for _ in range(turns):
                await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
    # A fixture of every test outside the unit tests finds processes that are left.


@pytest.mark.parametrize("others", [(), (runs("sleep 61"),)], ids=["alone", "among others"])
async def test_closing_ends_running_hooks(home: Path, others: tuple[Hook, ...]):
    desk = Desk(runs(TREE, blocks_on_error=True), *others)
    call = asyncio.create_task(desk.before())
    pid = await pid_in(home / "work" / "pid")
    await desk.hooks.close()
    await until(lambda: group_members(pid) == [])  # killed; the system takes a moment to clear them away
    before = await call
    assert before.hook_decision is not None
    assert before.hook_decision.behaviour == "deny"
    assert other_tasks() == []


async def test_waiting_hooks_do_not_start_after_closing(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.hooks.runner.COMMANDS_AT_ONCE", 1)
    desk = Desk(runs(TREE), runs("touch started", "PostToolUse"))
    running = asyncio.create_task(desk.before())
    await pid_in(home / "work" / "pid")
    waiting = asyncio.create_task(desk.hooks.after_call(TOOL, {}, "", is_error=False))
    for _ in range(10):  # until it stands in line
        await asyncio.sleep(0)
    await desk.hooks.close()
    await asyncio.wait({running, waiting})
    assert not Path("started").exists()
    assert desk.reports == ["the host is closing"] * 2


@pytest.mark.requirement("PRM-5")
async def test_command_hooks_run_concurrently(home: Path):
    def waits_for(mine: str, other: str) -> Hook:
        return runs(f"touch {mine}; until [ -e {other} ]; do sleep 0.01; done", timeout_seconds=20)

    async with Desk(waits_for("a", "b"), waits_for("b", "a")) as desk:
        await desk.before()
        assert desk.reports == []


async def test_the_number_of_concurrent_commands_is_limited_and_waiting_does_not_count_as_their_time(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("dragoman.hooks.runner.COMMANDS_AT_ONCE", 1)
    hooks = [
        runs(f"mkdir alone || exit 9; sleep 0.2; rmdir alone; : {number}", timeout_seconds=1.5)
        for number in range(10)
    ]
    async with Desk(*hooks) as desk:
        await desk.before()
        assert desk.reports == []


@pytest.mark.requirement("PRM-5")
async def test_the_same_command_runs_once(home: Path):
    same = "echo x >> ran.txt"
    async with Desk(runs(same), runs(same), runs(f"{same};")) as desk:
        await desk.before()
    assert Path("ran.txt").read_text() == "x\nx\n"


async def test_text_at_the_start_of_a_session_is_context():
    flood = python("print('\\x1b[31mbe kind ' * 9000)")
    async with Desk(runs(flood, "SessionStart"), runs("echo ignored", "SessionEnd")) as desk:
        (context,) = await desk.hooks.notify("SessionStart", {"source": "startup"})
        assert context.startswith("be kind be kind")
        assert len(context) <= CONTEXT_LIMIT
        assert await desk.hooks.notify("SessionEnd", {"reason": "other"}) == ()


async def test_after_a_call_exit_code_2_adds_the_reason_for_the_model():
    async with Desk(runs("echo look again >&2; exit 2", "PostToolUse")) as desk:
        assert await desk.hooks.after_call(TOOL, {}, "text", is_error=False) == After(("look again",))


async def test_recursive_hooks_end():
    environ = {**os.environ, commands.DEPTH: str(commands.DEPTH_LIMIT)}
    async with Desk(runs("true", blocks_on_error=True), environ=environ) as desk:
        before = await desk.before()
        assert before.hook_decision is not None
        assert before.hook_decision.behaviour == "deny"
        assert "too deep" in desk.reports[0]


@pytest.mark.parametrize("depth", ["-1", "x", "99999", "²", ""])
async def test_an_invalid_depth_counts_as_too_deep(depth: str):
    async with Desk(runs("true"), environ={**os.environ, commands.DEPTH: depth}) as desk:
        await desk.before()
        assert "too deep" in desk.reports[0]


async def test_an_event_that_json_cannot_express_is_reported():
    async with Desk(runs("cat"), hook(lambda given: None, "PreToolUse")) as desk:
        await desk.before({"what": object()})
        assert "cannot be written as JSON" in desk.reports[0]


# --- addresses ---

Answering = Callable[[web.Request], web.StreamResponse]


class Site:
    """An address that hooks are sent to."""

    def __init__(self) -> None:
        self.port = 0
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.answer: Answering = lambda request: web.Response()
        self.hold: asyncio.Event | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((dict(request.headers), await request.json()))
        if self.hold is not None:
            await self.hold.wait()
        return self.answer(request)

    def hook(self, **more: Any) -> Hook:
        headers = (("Authorization", "Bearer abc"),)
        what = HttpHook(f"http://127.0.0.1:{self.port}/hook", headers)
        return Hook(event="PreToolUse", what=what, name="h", **more)


@pytest.fixture
async def there() -> AsyncIterator[Site]:
    here = Site()
    async with site(web.post("/hook", here.handle), web.post("/elsewhere", here.handle)) as here.port:
        yield here


@pytest.mark.requirement("PRM-5")
async def test_an_http_hook_gets_the_event_and_decides(there: Site):
    there.answer = lambda request: web.json_response(decides(permissionDecision="ask", updatedInput={"a": 1}))
    async with Desk(there.hook()) as desk:
        before = await desk.before({"a": 0})
        assert before == Before({"a": 1}, HookDecision("ask", "a hook wants a person to be asked", "h"))
        await desk.before({"a": 0})
    headers, given = there.requests[0]
    assert headers["Authorization"] == "Bearer abc"
    assert headers["Content-Type"] == "application/json"
    assert (given["tool_name"], given["tool_input"]) == ("mcp__gh__list", {"a": 0})
    assert len(there.requests) == 2


def big(request: web.Request) -> web.Response:
    return web.Response(body=b"{" + b" " * 2_000_000 + b"}", content_type="application/json")


def bomb(request: web.Request) -> web.Response:
    response = big(request)
    response.enable_compression(web.ContentCoding.gzip)
    return response


ANSWERS: list[tuple[Answering, str | None]] = [
    (lambda request: web.Response(status=204), None),
    (lambda request: web.Response(text="fine"), None),
    (lambda request: web.Response(status=500, text='{"decision": "block"}'), "it answered with HTTP 500"),
    (lambda request: web.Response(status=401), "it answered with HTTP 401"),
    (
        lambda request: web.Response(status=307, headers={"Location": "/elsewhere"}),
        "it answered with HTTP 307",
    ),
    (lambda request: web.Response(text="{"), "its JSON cannot be read"),
    (lambda request: web.Response(text='{"a":' + "[" * 100_000), "its JSON cannot be read"),
    (big, "its answer has more than 1 MB"),
    (bomb, "its answer has more than 1 MB"),
]


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(("answer", "problem"), ANSWERS, ids=[str(problem) for _, problem in ANSWERS])
async def test_an_invalid_answer_is_reported(there: Site, answer: Answering, problem: str | None):
    there.answer = answer
    async with Desk(there.hook()) as desk:
        assert await desk.before() == Before({})
        assert (desk.reports == []) == (problem is None)
        assert problem is None or problem in desk.reports[0]
    async with Desk(there.hook(blocks_on_error=True)) as desk:
        before = await desk.before()
        assert (before.hook_decision is not None) == (problem is not None)
    assert len(there.requests) == 2  # and no redirect was followed


async def test_an_http_hook_that_does_not_answer_in_time_is_reported(there: Site):
    there.hold = asyncio.Event()
    async with Desk(there.hook(timeout_seconds=0.3)) as desk:
        await desk.before()
        assert desk.reports == ["it took longer than 0.3 s"]


async def test_an_unreachable_http_hook_is_reported():
    async with site() as port:
        pass
    gone = Hook(event="PreToolUse", what=HttpHook(f"http://127.0.0.1:{port}/"), name="h")
    async with Desk(gone) as desk:
        await desk.before()
        assert desk.reports == ["connection refused"]


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\0b"])
async def test_a_header_that_cannot_be_sent_is_reported_without_its_value(there: Site, value: str):
    what = HttpHook(f"http://127.0.0.1:{there.port}/hook", (("X-Key", f"s3cret{value}"),))
    async with Desk(Hook(event="PreToolUse", what=what, name="h")) as desk:
        await desk.before()
        assert len(desk.reports) == 1
        assert "s3cret" not in desk.reports[0]
    assert there.requests == []


async def test_closing_ends_running_requests(there: Site):
    there.hold = asyncio.Event()
    desk = Desk(there.hook(blocks_on_error=True))
    call = asyncio.create_task(desk.before())
    await until(lambda: there.requests)
    await desk.hooks.close()
    before = await call
    assert before.hook_decision is not None
    assert desk.reports == ["the host is closing"]


@pytest.mark.requirement("PRM-5")
async def test_the_same_url_is_called_once(there: Site):
    async with Desk(there.hook(), there.hook()) as desk:
        await desk.before()
    assert len(there.requests) == 1


@pytest.mark.requirement("PRM-5")
async def test_commands_urls_and_functions_decide_together(there: Site):
    there.answer = lambda request: web.json_response(decides(permissionDecision="allow"))
    async with Desk(
        there.hook(),
        runs("echo not today >&2; exit 2"),
        hook(lambda given: decides(additionalContext="c"), "PreToolUse"),
    ) as desk:
        assert await desk.before() == Before({}, HookDecision("deny", "not today", "h"), ("c",))


# --- in a host ---

ADD = "mcp__shop__add"


def answers(document: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda given: document


@pytest.mark.requirement("PRM-5")
async def test_a_call_that_a_hook_refuses_does_not_reach_its_server():
    server = WatchedServer()
    no = hook(answers({"decision": "block", "reason": "not today"}), "PreToolUse")
    async with Host({"shop": server}, permission_mode="bypassPermissions", hooks=[no]) as host:
        await host.ready()
        outcome = await host.call(ADD, {"a": 1, "b": 2})
    assert isinstance(outcome.error, PermissionRefused)
    assert "not today" in outcome.text
    assert server.calls_received() == 0


@pytest.mark.requirement("PRM-5")
async def test_a_hook_changes_arguments_and_adds_context():
    change = hook(answers(decides(updatedInput={"a": 20, "b": 22}, additionalContext="look")), "PreToolUse")

    def see(given: dict[str, Any]) -> dict[str, Any]:
        return {"hookSpecificOutput": {"additionalContext": f"got {given['tool_response']}"}}

    hooks = [change, hook(see, "PostToolUse")]
    async with Host({"shop": WatchedServer()}, permission_mode="bypassPermissions", hooks=hooks) as host:
        await host.ready()
        outcome = await host.call(ADD, {"a": 1, "b": 2})
    assert outcome.text.startswith("42")
    assert "look" in outcome.text
    assert "got 42" in outcome.text


async def test_changed_arguments_must_match_the_schema():
    server = WatchedServer()
    change = hook(answers(decides(permissionDecision="allow", updatedInput={"a": "x"})), "PreToolUse")
    async with Host({"shop": server}, permission_mode="bypassPermissions", hooks=[change]) as host:
        await host.ready()
        outcome = await host.call(ADD, {"a": 1, "b": 2})
    assert isinstance(outcome.error, InvalidArguments)
    assert server.calls_received() == 0


@pytest.mark.requirement("PRM-5")
async def test_a_hook_allows_calls_that_would_be_asked_about_but_not_denied_ones():
    yes = hook(answers(decides(permissionDecision="allow")), "PreToolUse")
    granted = hook(answers({"hookSpecificOutput": {"decision": {"behavior": "allow"}}}), "PermissionRequest")
    for allowing in (yes, granted):
        server = WatchedServer()
        async with Host({"shop": server}, hooks=[allowing]) as host:
            await host.ready()
            assert (await host.call(ADD, {"a": 1, "b": 2})).text == "3"
        async with Host({"shop": server}, hooks=[allowing], rules={"deny": [ADD]}) as host:
            await host.ready()
            assert isinstance((await host.call(ADD, {"a": 1, "b": 2})).error, PermissionRefused)
        assert server.calls_received() == 1


@pytest.mark.requirement("PRM-5")
async def test_an_administrators_hook_that_fails_blocks_and_a_persons_is_only_reported(home: Path):
    failing = {"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 7"}]}]}}
    (home / ".dragoman").mkdir()
    (home / ".dragoman" / "settings.json").write_text(json.dumps(failing))
    server = WatchedServer()
    options: dict[str, Any] = {"servers": {"shop": server}, "permission_mode": "bypassPermissions"}
    async with Host.configured(**options) as host:
        await host.ready()
        listener = host.events()
        assert (await host.call(ADD, {"a": 1, "b": 2})).text == "3"
    reports = [event async for event in listener if isinstance(event, HookReported)]
    assert [(report.event, report.text) for report in reports] == [
        ("PreToolUse", "it ended with exit code 7")
    ]

    (home / "managed").mkdir()
    (home / "managed" / "managed-mcp.json").write_text(json.dumps(failing))
    async with Host.configured(**options) as host:
        await host.ready()
        outcome = await host.call(ADD, {"a": 1, "b": 2})
    assert isinstance(outcome.error, PermissionRefused)
    assert server.calls_received() == 1


@pytest.mark.requirement("PRM-5")
async def test_hooks_are_run_for_sessions_and_connections():
    told: list[tuple[str, str]] = []

    def note(given: dict[str, Any]) -> None:
        told.append((given["hook_event_name"], given[EVENTS[given["hook_event_name"]]]))

    # Of the two servers, only one is meant.
    connections = [hook(note, event, matcher="shop") for event in ("ServerConnected", "ToolsChanged")]
    sessions = [hook(note, event) for event in ("SessionStart", "SessionEnd")]
    servers = {"shop": WatchedServer(), "other": WatchedServer()}
    async with Host(servers, hooks=[*connections, *sessions]) as host:
        await host.ready()
        await until(lambda: {event for event, _ in told} >= {"ServerConnected", "ToolsChanged"})
    assert told[0] == ("SessionStart", "startup")
    assert set(told[1:-1]) == {("ServerConnected", "shop"), ("ToolsChanged", "shop")}
    assert told[-1][0] == "SessionEnd"


async def test_cancelling_a_call_ends_its_hooks(home: Path):
    (home / ".dragoman").mkdir()
    hooks = {"PreToolUse": [{"hooks": [{"type": "command", "command": TREE}]}]}
    (home / ".dragoman" / "settings.json").write_text(json.dumps({"hooks": hooks}))
    server = WatchedServer()
    async with Host.configured(servers={"shop": server}, permission_mode="bypassPermissions") as host:
        await host.ready()
        call = asyncio.create_task(host.call(ADD, {"a": 1, "b": 2}))
        pid = await pid_in(home / "work" / "pid")
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: group_members(pid) == [])
        assert (await host.call("mcp__shop__nothing", {})).is_error
    assert server.calls_received() == 0
