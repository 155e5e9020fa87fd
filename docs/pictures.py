"""Makes docs/pictures/: what a person sees in a terminal and, after a sign-in, in the browser.
`scripts/docs --pictures` runs it.

Each picture is a real run of the real program in a pseudo-terminal, in a home of its own. Those of a sign-in
need `oidc-provider` and Chromium (`scripts/setup-interop`), and are left as they are where these are missing.
"""

import asyncio
import base64
import contextlib
import fcntl
import io
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

from pydantic_ai.models import Model
from rich.console import Console
from rich.text import Text
from textual.pilot import Pilot
from textual.widgets import Static

from dragoman import Host, ImageBlock
from dragoman.agent.events import Message
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions
from dragoman.interaction import (
    FormElicitation,
    PermissionQuestion,
    RelatedCall,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    UrlElicitation,
)
from dragoman.testing.model import Calls, Says, ScriptedModel
from dragoman.tui.app import ConversationApp
from dragoman.tui.form import FormView
from dragoman.tui.interaction import AppInteraction
from dragoman.tui.permission_question import PermissionView
from dragoman.tui.questions import QuestionApp
from dragoman.tui.sampling_review import SamplingView
from dragoman.tui.web_page_questions import UrlView
from tests.interop.oauth.parts import AuthorizationServer, Protected
from tests.tiers import read_parts

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, LINES = 100, 40
REFRESH_WAIT_SECONDS = 30.0

Step = tuple[str, str]
"""What to wait for on the screen, and the keys to press then."""

ASK = "dragoman call mcp__demo__add a=1000 b=24 --mcp-config demo"
RULES = (
    "dragoman permissions add allow 'mcp__demo(readOnly)'",
    "dragoman permissions add ask 'mcp__demo__add(a=1000)'",
    "dragoman permissions add deny 'mcp__*__fail'",
)
PICTURED: dict[str, list[tuple[str, list[Step]]]] = {
    "question": [("python examples/asking.py", [("y/s/a/p/w/n/t", "s")])],
    "refusal": [
        ("python examples/asking.py", [("y/s/a/p/w/n/t", "t"), ("Message to the model", "keep it\r")])
    ],
    "asked": [(ASK, [("y/n", "y")])],
    "refused": [
        ("dragoman call mcp__demo__fail --yes --mcp-config demo", []),
        ("dragoman call mcp__demo__add a=1000 b=24 --mcp-config demo < /dev/null", []),
    ],
    "explain": [
        ("dragoman permissions list", []),
        ("dragoman permissions explain mcp__demo__add --mcp-config demo", []),
        ("dragoman permissions test mcp__demo__add a=1000 b=24 --mcp-config demo", []),
        ("dragoman permissions test Bash 'git log && rm -rf build'", []),
    ],
    "audit": [("dragoman logs --audit", [])],
}


TICKET = {
    "title": {"type": "string", "title": "Title", "description": "One line", "minLength": 3},
    "reply": {"type": "string", "format": "email", "title": "Reply to"},
    "priority": {"type": "string", "enum": ["low", "high"], "default": "low", "title": "Priority"},
    "urgent": {"type": "boolean", "title": "Urgent", "default": True},
    "labels": {
        "type": "array", "items": {"type": "string", "enum": ["bug", "docs"]}, "title": "Labels"
    },
}  # fmt: skip
DEMO = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
_CALL = (RelatedCall("tools/call", "mcp__tracker__create_ticket"),)
SCREENS = {
    "form": FormView(
        FormElicitation(
            server="tracker",
            message="A few details before the ticket is created",
            schema={"type": "object", "properties": TICKET, "required": ["title"]},
            calls=_CALL,
        )
    ),
    "url": UrlView(
        UrlElicitation(
            server="tracker",
            message="Connect the tracker to your storage",
            url="https://accounts.xn--exmple-cua.com/authorize?client=1",
            host="accounts.xn--exmple-cua.com",
            warnings=("the host is written with letters of other alphabets: accounts.exämple.com",),
            calls=_CALL,
        )
    ),
    "sampling": SamplingView(
        SamplingReview(
            SamplingRequest(
                server="tracker",
                messages=(SamplingMessage("user", ({"type": "text", "text": "Suggest a title for: …"},)),),
                max_tokens=200,
                system_prompt="You write short titles of tickets.",
                calls=_CALL,
            )
        )
    ),
}
"""Questions of servers on a screen."""


FOLDER = Path("/home/ada/project")
ANSWER = """\
The three numbers are in `sums.csv`:

| a  | b | sum |
|----|---|-----|
| 40 | 2 | 42  |

I will **write it down** in the notes, too.
"""
DIFFERENCE = """\
@@ -1,3 +1,3 @@
 # Notes
-The sum is not known yet.
+The sum of 40 and 2 is 42."""
_EDIT = PermissionQuestion(
    server="",
    tool="Edit",
    title="Edit",
    arguments={"file_path": "/home/ada/project/notes.md"},
    risk="destroys",
    open_world=False,
    reason="no rule allows it",
    is_rememberable=False,
)


async def draw_conversation() -> None:
    """The terminal application with a scripted model and the demo server."""
    more = [Says((ANSWER,)), Calls("Bash", {"command": "make"})]
    script = [Calls("mcp__demo__add", {"a": 40, "b": 2})], more
    model, interaction = ScriptedModel(*script), AppInteraction(FOLDER)

    async def load(choice: ModelChoice) -> Model:
        return model.model

    rules = {"allow": ["mcp__demo__add"]}
    async with Host({"demo": DEMO}, rules=rules, permission_mode="default", interaction=interaction) as host:
        await host.ready()
        options = AgentOptions(model=ModelChoice("anthropic:claude-sonnet-5"), folder=FOLDER)
        app = ConversationApp(host, options, interaction, load)
        async with app.run_test(size=(100, 40)) as pilot:
            while app.control.session is None:
                await pilot.pause()
            app.control.send(Message("What is 40 and 2? Write it down."))
            await _wait_for_question(pilot)
            (PICTURES / "conversation.svg").write_text(app.export_screenshot())
            app.control.stop()
            while app.control.is_working:
                await pilot.pause()
            app.start(app.ask(PermissionView(_EDIT, DIFFERENCE, is_in_folder=True)))
            await _wait_for_question(pilot)
            (PICTURES / "difference.svg").write_text(app.export_screenshot())


async def _wait_for_question(pilot: Pilot[int]) -> None:
    while "answers" not in str([each.render() for each in pilot.app.query(".keys").results(Static)]):
        await pilot.pause(0.05)


async def draw_screens() -> None:
    for name, question in SCREENS.items():
        app = QuestionApp(question)
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            (PICTURES / f"{name}.svg").write_text(app.export_screenshot())


PARTS = read_parts(ROOT)
BROWSER = """#!/bin/sh
printf %s "$1" > "$HOME/page.part" && mv "$HOME/page.part" "$HOME/page"
"""
"""Says which page it was asked to open. The person's browser is the Chromium of `draw_sign_in`."""
FILL_IN = """() => {
  for (const field of document.querySelectorAll('[name=login], [name=password]')) field.value = 'anna';
  document.querySelector('[type=submit]').click();
}"""


def part(name: str, *arguments: str) -> dict[str, object]:
    program, *first = PARTS[name]["command"]
    return {"command": program, "args": [*first, *arguments]}


async def draw_sign_in(home: str) -> None:
    """`dragoman mcp login` in the terminal, and the page at which the browser ends."""
    tools = {**part("playwright", "--caps", "devtools"), "cwd": home}
    async with (
        AuthorizationServer(part) as authorization,
        Protected(authorization) as server,
        Host({"browser": tools}, permission_mode="bypassPermissions") as host,
    ):
        await host.ready(timeout=60)

        async def use(tool: str, **arguments: object) -> object:
            return (await host.call(f"mcp__browser__{tool}", arguments)).raise_for_error()

        commands = [f"dragoman mcp add -s user tracker {server.url}", "dragoman mcp login tracker"]
        await asyncio.to_thread(_run, commands[0], [], home)
        signing_in = asyncio.create_task(asyncio.to_thread(_run, commands[1], [], home))
        await use("browser_resize", width=800, height=420)
        await use("browser_navigate", url=await asyncio.to_thread(_opened_page, home))
        for _ in range(2):  # the sign-in, then the consent
            await use("browser_evaluate", function=FILL_IN)
            await use("browser_wait_for", time=0.5)
        shown = _draw([(commands[1], await signing_in)], "login", home)
        assert "Connected" in shown, shown
        picture = await host.call("mcp__browser__browser_take_screenshot", {"scale": "css"}, raw=True)
        (image,) = [block for block in picture.content if isinstance(block, ImageBlock)]
        (PICTURES / "signed-in.png").write_bytes(base64.b64decode(image.data))


def _opened_page(home: str) -> str:
    """The URL that the program has a browser open."""
    page, deadline = Path(home, "page"), time.monotonic() + REFRESH_WAIT_SECONDS
    while not page.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return page.read_text()


def _draw(runs: list[tuple[str, str]], name: str, home: str) -> str:
    """Commands and what was on the screen, as one picture; its text."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    for command, shown in runs:
        shown = _last_lines(shown).replace(home, "~").replace(str(ROOT), "…")
        console.print(Text(f"$ {command}", style="bold"))
        console.print(Text.from_ansi(shown.rstrip()))
    text = console.export_text(clear=False)
    (PICTURES / f"{name}.svg").write_text(console.export_svg(title="dragoman", unique_id=name))
    return text


def _last_lines(shown: str) -> str:
    """Without the lines that a spinner or a bar has replaced, and without those about connecting."""
    return re.sub(r"[^\n]*servers checked[^\n]*\n", "", re.sub(r"[^\n]*\r\x1b\[2K", "", shown))


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    asyncio.run(draw_screens())
    with tempfile.TemporaryDirectory() as home:
        absent = [name for name in ("oidc-provider", "playwright") if "command" not in PARTS.get(name, {})]
        if absent:
            print(f"login.svg and signed-in.png stay: {', '.join(absent)} missing", file=sys.stderr)
        else:
            script = Path(home, "browser")
            script.write_text(BROWSER)
            script.chmod(0o755)
            asyncio.run(draw_sign_in(home))
    with tempfile.TemporaryDirectory() as home:
        os.environ["DRAGOMAN_CONFIG_DIR"] = home
        asyncio.run(draw_conversation())
    with tempfile.TemporaryDirectory() as home:
        for command in RULES:
            _run(command, [], home)
        for name, runs in PICTURED.items():
            _draw([(command, _run(command, steps, home)) for command, steps in runs], name, home)


def _run(command: str, steps: list[Step], home: str) -> str:
    """What is on the screen when the command has ended."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {"HOME": home, "PATH": path, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    environ["BROWSER"] = f"{home}/browser"
    process = subprocess.Popen(
        ["/bin/sh", "-c", command], cwd=ROOT, env=environ, stdin=follower, stdout=follower, stderr=follower,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(follower)
    screen, waiting = "", list(steps)
    deadline = time.monotonic() + REFRESH_WAIT_SECONDS
    while time.monotonic() < deadline:
        ready, _, _ = select.select([leader], [], [], 0.1)
        data = b""
        with contextlib.suppress(OSError):
            data = os.read(leader, 65536) if ready else b""
        screen += data.decode("utf-8", "replace")
        if waiting and waiting[0][0] in _plain(screen):
            time.sleep(0.5)  # keys pressed before the program listens for single ones are dropped
            os.write(leader, waiting.pop(0)[1].encode())
        if ready and not data:
            break
    process.wait(REFRESH_WAIT_SECONDS)
    os.close(leader)
    if waiting:
        raise SystemExit(f"{command}: {waiting[0][0]!r} never came:\n{screen}")
    return screen.replace("\r\n", "\n")


def _plain(screen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)


if __name__ == "__main__":
    main()
