"""The tools of one agent: built-in ones with a working directory of their own, and those of its servers.

Servers that an agent's file defines are started for it, and end with it, as does every command it has
started.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from dragoman.agent.builtin.files import file_tools
from dragoman.agent.builtin.find import find_tools
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import PATH, Workspace
from dragoman.agent.definitions import AgentDefinition, project_of
from dragoman.agent_servers import HasTools
from dragoman.calls.requests import READ_RESOURCE
from dragoman.catalog.tools import BuiltinTool
from dragoman.config.scopes import IN_PROJECT
from dragoman.errors import NotConnected
from dragoman.host import Host
from dragoman.servers.status import ServerStatus
from dragoman.toolbox import Toolbox
from dragoman.transports.orphans import watchdog

SERVER_WAIT_SECONDS: Final = 5.0
"""How long the first request waits for servers that are not required; others are found by searching."""


class Folders(Struct, frozen=True):
    """Where built-in tools work."""

    folder: Path
    extra: tuple[Path, ...] = ()


class Equipment(NamedTuple):
    toolbox: Toolbox
    servers: HasTools
    required: tuple[str, ...]

    async def connected(self) -> None:
        """Waits for the servers; raises `NotConnected` if a required one is not there then."""
        if self.required:
            views = await self.servers.ready(only=self.required)
            for name in self.required:
                if (view := views.get(name)) is None or view.status != "connected":
                    raise _missing(name, view)
        await self.servers.ready(timeout=SERVER_WAIT_SECONDS)


@asynccontextmanager
async def open_equipment(
    host: Host,
    folders: Folders,
    agent: AgentDefinition | None = None,
    *,
    required: Sequence[str] = (),
    more: Sequence[BuiltinTool] = (),
) -> AsyncGenerator[Equipment]:
    """What an agent works with; with `agent` None all there is. `required`: servers that are waited for as
    long as they take. `more`: further built-in tools.

    Raises `ConfigError` if a server that it names is not configured or may not be started.
    """
    workspace = Workspace(folders.folder, folders.extra)
    shell = Shell(workspace, watchdog)
    files = file_tools(workspace)

    def may_read(path: Path) -> bool:
        return not workspace.is_private(path) and host.is_unopposed(files[0], {PATH: str(path)})

    tools = [*files, *find_tools(workspace, watchdog, may_read), *shell.tools(), *more]
    try:
        if agent is None:
            yield Equipment(host.toolbox(tools), host, tuple(required))
            return
        needed = tuple(dict.fromkeys((*agent.required_servers, *required)))
        named = agent.servers if agent.servers is not None else _startable(host)
        # As configured servers of the same origin: what was approved is what runs, wherever the person works.
        folder = project_of(agent.path) if agent.scope in IN_PROJECT else "own"
        async with host.for_agent(
            named, required=needed, has_tool=agent.has_tool, start_in=folder
        ) as servers:
            own = [tool for tool in tools if agent.has_tool(tool.name)]
            resources = agent.servers is None and agent.has_tool(READ_RESOURCE.name)
            toolbox = host.toolbox(own, resources=resources, servers=servers)
            yield Equipment(toolbox, servers, needed)
    finally:
        await shell.close()


def _startable(host: Host) -> list[str]:
    servers = host.configuration.servers
    return [name for name, server in servers.items() if server.eligibility == "ready"]


def _missing(name: str, view: ServerStatus | None) -> NotConnected:
    status, reason = ("missing", None) if view is None else (view.status, view.reason)
    return NotConnected(name, status, reason, hint="The agent requires this server.")
