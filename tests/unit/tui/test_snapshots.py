"""Every screen of the application as a picture, at 80x24 and 140x40.

`UPDATE_PICTURES=1` writes the pictures again; look at them before they are committed.
"""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, TextArea

from dragoman.agent.transcript import TranscriptInfo
from dragoman.interaction import (
    FormElicitation,
    PermissionQuestion,
    RelatedCall,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    UrlElicitation,
)
from dragoman.testing.model import Calls
from dragoman.tui import servers_screen
from dragoman.tui.blocks import ToolBlock
from dragoman.tui.form import FormView
from dragoman.tui.permission_question import PermissionView
from dragoman.tui.question_view import QuestionView
from dragoman.tui.sampling_review import SamplingView
from dragoman.tui.screens import ContextPart, ResumeScreen, context_screen
from dragoman.tui.session_control import SessionControl
from dragoman.tui.web_page_questions import UrlView
from tests.unit.tui.desk import Desk, Seat, desk

__all__ = ["desk"]

PICTURES = Path(__file__).parent / "pictures"
FOLDER = Path("/home/ada/project")
ANSWER = """\
# Result

The sum is **three**. See `add` and [the manual](https://example.com/manual).

- a first item with a text that goes on and on until it does not fit into one line of a narrow screen
- a second one
  1. nested

| name  | value |
|-------|-------|
| alpha | 1     |

```python
def add(a: int, b: int) -> int:
    return a + b
```
"""
CALLS = (RelatedCall("tools/call", "mcp__tracker__create_ticket"),)
FIELDS: dict[str, Any] = {
    "title": {"type": "string", "title": "Title", "description": "One line", "minLength": 3},
    "priority": {"type": "string", "enum": ["low", "high"], "default": "low", "title": "Priority"},
    "urgent": {"type": "boolean", "title": "Urgent", "default": True},
}
DIFF = """\
@@ -1,4 +1,5 @@
 def greet(name):
-    print("Hello " + name)
+    if name:
+        print(f"Hello {name}")
 greet("Ada")"""
TOOL = PermissionQuestion(
    server="tracker",
    tool="mcp__tracker__delete_ticket",
    title="Delete a ticket",
    arguments={"id": 4711, "reason": "duplicate of\n4710"},
    risk="destroys",
    reason="no rule allows it",
    rule="mcp__tracker__delete_ticket@0123456789abcdef0123456789abcdef",
    server_rule="mcp__tracker",
)
EDIT = PermissionQuestion(
    server="",
    tool="Edit",
    title="Edit",
    arguments={"file_path": "/home/ada/project/greet.py"},
    risk="destroys",
    open_world=False,
    reason="no rule allows it",
    is_rememberable=False,
)


async def answer(seat: Seat) -> None:
    await seat.say("What is 1 + 2?\nShow me some lines, too.")


async def working(seat: Seat) -> None:
    await seat.send("Copy everything")
    await seat.until(lambda: seat.app.control.turn.activity == "1 call")
    block = next(each for each in seat.app.conversation.blocks if isinstance(each, ToolBlock))
    block.progress, block.message = 0.4, "40 of 100 files"
    seat.app.conversation.update_block(block)
    await seat.send("and tell me when it is done")


def question(view: Callable[[], QuestionView[Any]]) -> Callable[[Seat], Awaitable[None]]:
    async def show(seat: Seat) -> None:
        seat.app.start(seat.app.ask(view()))
        await seat.until(lambda: "…" not in seat.shown("#question .keys"))

    return show


def command(text: str, *keys: str) -> Callable[[Seat], Awaitable[None]]:
    async def show(seat: Seat) -> None:
        await seat.send(text)
        await seat.until(lambda: len(seat.app.screen_stack) == 2)
        await seat.pilot.press(*keys)
        await seat.pilot.pause()

    return show


async def permissions(seat: Seat) -> None:
    seat.app.host.add_rule("allow", "mcp__desk__add")
    seat.app.host.add_rule("ask", "Bash(git push *)")
    await command("/permissions")(seat)


async def context(seat: Seat) -> None:
    parts = [
        ContextPart("system prompt", 620),
        ContextPart("built-in tools", 2400, "10 tools"),
        ContextPart("tools of desk", 350, "4 tools"),
        ContextPart("prompts", 90),
        ContextPart("answers", 2100),
        ContextPart("tool results", 18_000),
    ]
    seat.app.push_screen(context_screen(parts, 200_000))


async def resume(seat: Seat) -> None:
    screen = ResumeScreen(FOLDER)
    await seat.app.push_screen(screen)
    prompts = ("Why does the build fail?", "Rename the module, and everything that uses it, in all packages")
    screen.show(
        [
            TranscriptInfo(id=f"20260101-00000{n}-aaaaaa", folder=str(FOLDER), model="scripted:model",
                           first_prompt=prompt, changed_at=1_790_000_000.0 + n)
            for n, prompt in enumerate(prompts)
        ]
    )  # fmt: skip


async def completions(seat: Seat) -> None:
    await seat.type("/co")
    await seat.until(lambda: seat.app.prompt.is_completing)


async def start(seat: Seat) -> None:
    await seat.until(lambda: "broken" in seat.text)


FORM = FormElicitation(
    server="tracker",
    message="A few details before the ticket is created",
    schema={"type": "object", "properties": FIELDS, "required": ["title"]},
    calls=CALLS,
)
URL = UrlElicitation(
    server="tracker",
    message="Connect the tracker to your storage",
    url="https://accounts.example.com/authorize?client=1",
    host="accounts.example.com",
    calls=CALLS,
)
SAMPLING = SamplingReview(
    SamplingRequest(
        server="tracker",
        messages=(SamplingMessage("user", ({"type": "text", "text": "Suggest a title for: …"},)),),
        max_tokens=200,
        system_prompt="You write short titles of tickets.",
        calls=CALLS,
    )
)
SCENES: dict[str, Callable[[Seat], Awaitable[None]]] = {
    "start": start,
    "answer": answer,
    "working": working,
    "permission": question(lambda: PermissionView(TOOL)),
    "difference": question(lambda: PermissionView(EDIT, DIFF, is_in_folder=True)),
    "form": question(lambda: FormView(FORM)),
    "url": question(lambda: UrlView(URL)),
    "sampling": question(lambda: SamplingView(SAMPLING)),
    "completions": completions,
    "help": command("/help"),
    "mcp": command("/mcp", "down"),
    "mcp-log": command("/mcp", "l"),
    "permissions": permissions,
    "context": context,
    "resume": resume,
}
SCRIPTS: dict[str, list[Any]] = {
    "answer": [
        [
            Calls("mcp__desk__add", {"a": 1, "b": 2}),
            Calls("mcp__desk__lines", {"n": 40}),
            Calls("mcp__desk__fail", {"path": "/data"}),
        ],
        ANSWER,
    ],
    "working": [Calls("mcp__desk__hang", {"from": "/data", "to": "/backup"}), "Done."],
}
LOG = [
    {"time": "2026-01-01T12:00:00.000Z", "level": "info", "text": "connected"},
    {"time": "2026-01-01T12:00:01.000Z", "level": "warning", "text": "the index is old"},
]


def normalised(svg: str) -> str:
    """Without the ids that are generated for each picture."""
    return re.sub(r"terminal-\d+", "terminal", svg)


@pytest.mark.slow
@pytest.mark.requirement("AGT-4")
@pytest.mark.parametrize("size", [(80, 24), (140, 40)], ids=["80x24", "140x40"])
@pytest.mark.parametrize("scene", SCENES)
async def test_the_screen_equals_the_reviewed_snapshot(
    desk: Desk, scene: str, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(SessionControl, "elapsed_seconds", 0)
    monkeypatch.setattr(servers_screen, "_last_lines", lambda server: LOG)
    monkeypatch.setenv("TZ", "UTC")
    servers: dict[str, Any] = {"desk": desk.server}
    if scene in ("start", "mcp", "mcp-log"):
        servers["broken"] = {"command": "/nonexistent/server"}
    script = SCRIPTS.get(scene, [])
    async with desk.opened(*script, size=size, servers=servers, folder=FOLDER) as seat:
        await SCENES[scene](seat)
        await seat.pilot.pause()
        for field in (*seat.app.screen.query(Input), *seat.app.screen.query(TextArea)):
            field.cursor_blink = False
        await seat.pilot.pause()
        picture = normalised(seat.app.export_screenshot())
        desk.release.set()
    path = PICTURES / f"{scene}-{size[0]}x{size[1]}.svg"
    if os.environ.get("UPDATE_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        path.write_text(picture)
    (tmp_path / path.name).write_text(picture)
    assert picture == path.read_text(), f"it looks different: compare {tmp_path / path.name} with {path}"
