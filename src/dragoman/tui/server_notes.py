"""Adds notes about servers, configuration and hooks to the conversation: the problem and the next step.

A server that fails repeatedly gets only a few notes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from dragoman.cleaning import one_line
from dragoman.events import (
    ConfigurationChanged,
    Event,
    HookReported,
    PermissionModeChanged,
    ServerFailed,
    ServerStateChanged,
)
from dragoman.host import Host
from dragoman.names import shell_quoted

if TYPE_CHECKING:
    from dragoman.tui.app import ConversationApp

PROBLEM_LIMIT: Final = 10
"""The most problems of the configuration that are shown at the start; `dragoman config explain` lists all."""
SERVER_LIMIT: Final = 5
"""The most notes about one server; the status line and `/mcp` still show its state."""


class ServerNotes:
    def __init__(self, app: ConversationApp, host: Host) -> None:
        self._app = app
        self._host = host
        self._last: dict[str, str] = {}
        """The last note about each server."""
        self._counts: Counter[str] = Counter()

    async def follow(self) -> None:
        """Shows current problems, then those of later events."""
        events = self._host.events()
        for problem in self._host.problems[:PROBLEM_LIMIT]:
            self._app.note(one_line(problem, 500), is_problem=True)
        for name, entry in self._host.configuration.servers.items():
            if entry.eligibility == "pending":
                self._show_server(
                    name, "pending", entry.reason or "", f"dragoman mcp approve {shell_quoted(name)}"
                )
        for view in self._host.servers.values():
            if view.status in ("failed", "needs-auth"):
                hint = getattr(view.error, "hint", None)
                self._show_server(view.name, view.status, view.reason or "", hint)
        async for event in events:
            self._show(event)

    def _show(self, event: Event) -> None:
        match event:
            case ServerFailed():
                self._show_server(event.server, "failed", event.reason, event.hint)
            case ServerStateChanged(status="needs-auth"):
                self._show_server(event.server, "needs-auth", event.reason or "", None)
            case HookReported():
                text = f"hook {event.hook} ({event.event}): {event.text}"
                self._app.note(text, is_problem=event.is_failure)
            case ConfigurationChanged():
                for problem in event.problems[:PROBLEM_LIMIT]:
                    self._app.note(one_line(problem, 500), is_problem=True)
            case _:
                pass
        if isinstance(event, ServerStateChanged | PermissionModeChanged):
            self._app.tick()

    def _show_server(self, name: str, status: str, reason: str, hint: str | None) -> None:
        """Adds a note with the next step, unless it repeats the last note about the server."""
        step = "Sign in with /mcp." if status == "needs-auth" else hint or f"/mcp reconnect {name}"
        reason = one_line(reason.removeprefix(f"{name}: "), 300).rstrip(".")
        text = f"server {one_line(name, 60)}: {reason}. {one_line(step, 200)}"
        if text != self._last.get(name) and self._counts[name] < SERVER_LIMIT:
            self._last[name] = text
            self._counts[name] += 1
            self._app.note(text, is_problem=True)
