"""The screen `/mcp`: every server with its state, its tools with cost and risk, and its log.

The screen is updated while it is open. Enabling, disabling and reconnecting continue after it is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Footer, OptionList, Static
from textual.widgets.option_list import Option

from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import Tool
from dragoman.cleaning import one_line, visible
from dragoman.connections import server_log
from dragoman.errors import DragomanError
from dragoman.host import Host
from dragoman.names import counted, shell_quoted
from dragoman.servers.status import STATUS_MARKS, ServerStatus
from dragoman.tui.status_line import short_count

REFRESH_SECONDS: Final = 0.5
LOG_LINES: Final = 200
TOOLS_SHOWN: Final = 200
"""The most tools of a server that are listed. While their rows are laid out, the application is blocked."""
STYLES: Final = {
    "connected": "$text-success",
    "pending": "$text-warning",
    "failed": "bold $text-error",
    "needs-auth": "bold $text-warning",
    "disabled": "dim",
}
RISKS: Final = {
    "reads": ("○ read-only", "$text-success"),
    "writes": ("● not read-only", "$text-warning"),
    "destroys": ("▲ destructive", "bold $text-error"),
}


def server_row(view: ServerStatus) -> Content:
    mark, style = STATUS_MARKS[view.status], STYLES[view.status]
    state = view.phase or view.status
    return Content.assemble(
        (f"{mark} ", style), (f"{one_line(view.name, 40):<16}", "bold"), f" {state:<12}",
        (f" {counted(view.tool_count, 'tool')}" if view.status == "connected" else "", "dim"),
    )  # fmt: skip


def server_text(view: ServerStatus, tools: Sequence[Tool]) -> Content:
    rows = [
        ("state", f"{view.status}{f' ({view.phase})' if view.phase else ''}"),
        ("reason", one_line(view.own_reason, 500)),
        ("next step", one_line(getattr(view.error, "hint", None) or _NEXT_STEPS.get(view.status, ""), 300)),
        ("from", f"{view.scope} ({one_line(view.source, 200)}), {view.transport}"),
        ("server", one_line(" ".join(filter(None, _identity(view))), 200)),
        *(("!", one_line(problem, 300)) for problem in view.problems[:10]),
    ]
    lines = [Content.assemble((f"{name:<10}", "dim"), text) for name, text in rows if text]
    if tools:
        cost = short_count(sum(map(cost_of, tools)))
        lines += [Content(""), Content.styled(f"{counted(len(tools), 'tool')}, about {cost} tokens", "bold")]
    shown = tools[:TOOLS_SHOWN]
    width = min(40, max((len(one_line(tool.definition.name, 40)) for tool in shown), default=0))
    for tool in shown:
        risk, style = RISKS[tool.hints.risk]
        lines.append(
            Content.assemble(
                f"  {one_line(tool.definition.name, 40):<{width}}  {short_count(cost_of(tool)):>6}  ",
                (f"{risk:<15}", style),
                ("  open world" if tool.hints.open_world else "", "dim"),
            )
        )  # fmt: skip
    if more := len(tools) - len(shown):
        lines.append(
            Content(
                f"  and {counted(more, 'tool')} more: dragoman tools {one_line(shell_quoted(view.name), 200)}"
            )
        )
    return Content("\n").join(lines)


_NEXT_STEPS: Final = {
    "failed": "r reconnects; l shows the log",
    "needs-auth": "s signs in",
    "disabled": "e enables it",
}


def _identity(view: ServerStatus) -> list[str]:
    """The name, the version and the protocol revision that the server reported."""
    info = view.server_info
    return [str(info.get("name") or ""), str(info.get("version") or ""), view.protocol_version or ""]


def log_text(lines: Sequence[dict[str, Any]], stderr_tail: str) -> Content:
    """The newest lines of a server's log; without a log file, its stderr."""
    if not lines:
        return Content(visible(stderr_tail, 10_000) or "(no log yet)")
    return Content("\n").join([_log_line(line) for line in lines])


def _log_line(line: dict[str, Any]) -> Content:
    when, level = one_line(str(line.get("time", "")), 30), one_line(str(line.get("level", "")), 10)
    text = one_line(str(line.get("text", "")), server_log.TEXT_LIMIT)
    return Content.assemble((f"{when} {level:<8}", "dim"), text)


class ServersScreen(Screen["str | None"]):
    """Returns the name of a server to sign in to, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "dismiss(None)", "Back"),
        Binding("e", "switch", "Enable/disable"),
        Binding("r", "reconnect", "Reconnect"),
        Binding("s", "sign_in", "Sign in"),
        Binding("l", "log", "Log/tools"),
        Binding("pageup", "scroll_details(-1)", show=False, priority=True),
        Binding("pagedown", "scroll_details(1)", show=False, priority=True),
    ]
    CSS_PATH = "screens.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]  # noqa: RUF012

    def __init__(self, host: Host) -> None:
        super().__init__()
        self._host = host
        self._shows_log = False
        self._shown: list[str] = []
        """The names of the servers, in the order of the rows."""
        self._acting: set[asyncio.Task[None]] = set()

    def compose(self) -> ComposeResult:
        yield Static("", markup=False, classes="title")
        with Horizontal(id="servers"):
            yield OptionList(id="names", markup=False)
            with VerticalScroll(id="details"):
                yield Static("", markup=False, id="about")
        yield Footer(show_command_palette=False)

    async def on_mount(self) -> None:
        self.query_one(OptionList).focus()
        await self._refresh()
        self.set_interval(REFRESH_SECONDS, self._refresh)

    @property
    def _chosen(self) -> ServerStatus | None:
        """The server whose row is selected on the screen."""
        place = self.query_one(OptionList).highlighted
        if place is None or place >= len(self._shown):
            place = 0
        return self._host.servers.get(self._shown[place]) if self._shown else None

    async def _refresh(self) -> None:
        """Updates the list and the details. Rows are replaced one by one, so that the selection stays; where
        there are other servers than before, the same server stays selected."""
        views = list(self._host.servers.values())
        names = self.query_one(OptionList)
        if (now := [view.name for view in views]) != self._shown:
            chosen = self._chosen
            self._shown = now
            names.clear_options()
            names.add_options([Option(server_row(view)) for view in views])
            place = now.index(chosen.name) if chosen is not None and chosen.name in now else 0
            names.highlighted = place if now else None
        else:
            for number, view in enumerate(views):
                names.replace_option_prompt_at_index(number, server_row(view))
        connected = sum(view.status == "connected" for view in views)
        self.query_one(".title", Static).update(f"MCP servers: {connected} of {len(views)} connected")
        await self._show_details()

    async def _show_details(self) -> None:
        about, view = self.query_one("#about", Static), self._chosen
        if view is None:
            about.update("No servers are configured. `dragoman mcp add` adds one.")
        elif self._shows_log:
            lines = await asyncio.to_thread(_last_lines, view.name)
            about.update(log_text(lines, view.stderr_tail))
        else:
            tools = [tool for tool in self._host.tools(include_denied=True) if tool.server == view.name]
            about.update(server_text(view, tools))

    async def on_option_list_option_highlighted(self, event: OptionList.OptionHighlighted) -> None:
        event.stop()
        await self._show_details()

    # Actions.

    def action_scroll_details(self, direction: int) -> None:
        details = self.query_one("#details")
        if direction < 0:
            details.scroll_page_up(animate=False)
        else:
            details.scroll_page_down(animate=False)

    async def action_log(self) -> None:
        self._shows_log = not self._shows_log
        await self._show_details()

    def action_switch(self) -> None:
        if (view := self._chosen) is not None:
            self._act(self._host.enable if view.status == "disabled" else self._host.disable, view.name)

    def action_reconnect(self) -> None:
        if (view := self._chosen) is not None:
            self._act(self._host.reconnect, view.name)

    def action_sign_in(self) -> None:
        if (view := self._chosen) is not None:
            self.dismiss(view.name)

    def _act(self, act: Callable[[str], Awaitable[ServerStatus]], name: str) -> None:
        task = asyncio.ensure_future(self._run_action(act, name))
        self._acting.add(task)
        task.add_done_callback(self._acting.discard)

    async def _run_action(self, act: Callable[[str], Awaitable[ServerStatus]], name: str) -> None:
        try:
            await act(name)
        except DragomanError as error:
            self.notify(one_line(str(error), 500), severity="error", markup=False)


def _last_lines(server: str) -> list[dict[str, Any]]:
    return list(deque(server_log.read(server_log.path_of(server)), maxlen=LOG_LINES))
