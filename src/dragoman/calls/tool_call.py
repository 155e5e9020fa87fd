"""A call as it is passed through the pipeline, and a call that was allowed."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from dragoman.calls.progress import OnProgress
from dragoman.calls.recovery import Changed
from dragoman.calls.task_store import RunningTask
from dragoman.catalog.tools import BuiltinTool, Run, ServerTool, Tool
from dragoman.content.redact import Redactor
from dragoman.interaction import LOCAL_CALLER, Caller, RelatedCall
from dragoman.permissions.checker import PermissionChecker
from dragoman.servers.registry import ServerRegistry
from dragoman.servers.server import Server

_PREFIX: Final = f"call_{os.urandom(4).hex()}_"
_numbers: Final = itertools.count(1)


def new_call_id() -> str:
    """An id that no other call has, in this process or another."""
    return f"{_PREFIX}{next(_numbers)}"


class ToolCall(Struct, frozen=True):
    name: str
    arguments: Mapping[str, Any]
    timeout_seconds: float | None = None
    on_progress: OnProgress | None = None
    builtin_tools: Mapping[str, BuiltinTool] | None = None
    """The caller's built-in tools; they are found before those of servers."""
    reset_timeout_on_progress: bool = False
    """Whether the time limit starts again with each progress notification."""
    raw: bool = False
    """Whether the result is wanted as the server sent it, whatever its size: for people and programs."""
    forward: bool = False
    """With `raw`: a result that needs no change stays undecoded, as `CallOutcome.forwarded`."""
    meta: Mapping[str, Any] | None = None
    """`_meta` of the request: a trace context, or fewer capabilities than the host declares."""
    perform: Run | None = None
    """Carries out a request that a program or person makes itself, in place of the built-in tool that it is
    judged as (see `requests.py`)."""
    resumes: RunningTask | None = None
    """A task whose result is fetched, in place of calling its tool again."""
    background_after_seconds: float | None = None
    """The caller stops waiting after so many seconds, and the call continues."""
    moves_tasks_only: bool = False
    """Whether only a call that its server runs as a task may continue."""
    caller: Caller = LOCAL_CALLER
    call_id: str = field(default_factory=new_call_id)
    """Identifies this call in events and hooks."""

    def related(self, tool: Tool) -> RelatedCall:
        """This call, as questions of the server name it."""
        return RelatedCall("tools/call", tool.name, self.call_id, self.caller)


class JudgedCall(Struct, frozen=True):
    """A call that was allowed, with the tool, the server and the arguments for which it was."""

    servers: ServerRegistry
    tool: ServerTool | BuiltinTool
    server: Server | None
    """The server of the tool, or the server that a built-in tool reads from."""
    server_name: str
    """The name of that server, also if none of this name is configured; empty if the tool needs no server."""
    arguments: Mapping[str, Any]
    redactor: Redactor | None
    permissions: PermissionChecker
    rules_version: int
    """The version of the rules before the call was judged."""

    def check(self) -> None:
        """Raises `Changed` if the tool or the server has been replaced, or if a rule denies the call by now.
        Called before each time that something is sent. (A method: a function inside `Pipeline._make` takes
        0.3 µs more for each call.)"""
        tool = self.tool
        # A changed entry gets a new `Server`, and a new `Server` new tools.
        if isinstance(tool, ServerTool):
            is_same = self.servers.catalog.find(tool.name) is tool
        else:
            is_same = self.servers.find(self.server_name) is self.server
        permissions = self.permissions
        if not is_same or (
            permissions.version != self.rules_version and permissions.denies(tool, self.arguments)
        ):
            raise Changed
