"""The tools of one agent: built-in tools with their own working directory, and the tools of its servers.

Servers that an agent's file defines are started for the agent. When the agent ends, these servers and all
commands that it has started are stopped.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from dragoman.agent.builtin.files import file_tools
from dragoman.agent.builtin.find import find_tools
from dragoman.agent.builtin.shell import Shell
from dragoman.agent.builtin.workspace import PATH, Workspace
from dragoman.agent.definitions import AgentDefinition, project_of
from dragoman.agent_servers import HasTools
from dragoman.catalog.tools import BuiltinTool
from dragoman.config.scopes import IN_PROJECT
from dragoman.errors import NotConnected
from dragoman.host import Host
from dragoman.servers.status import ServerStatus
from dragoman.toolbox import Toolbox
from dragoman.transports.orphans import watchdog

SERVER_WAIT_SECONDS: Final = 5.0
"""How long the first request waits for servers that are not required."""


class Folders(Struct, frozen=True):
    """The folders that built-in tools may use."""

    folder: Path
    extra: tuple[Path, ...] = ()


class AgentTools(NamedTuple):
    toolbox: Toolbox
    servers: HasTools
    required: tuple[str, ...]

    async def wait_until_connected(self) -> None:
        """Waits for the servers. Raises `NotConnected` if a required server cannot be connected."""
        if self.required:
            views = await self.servers.ready(only=self.required)
            for name in self.required:
                if (view := views.get(name)) is None or view.status != "connected":
                    raise _not_connected(name, view)
        await self.servers.ready(timeout=SERVER_WAIT_SECONDS)


@asynccontextmanager
async def open_agent_tools(
    host: Host,
    folders: Folders,
    agent: AgentDefinition | None = None,
    *,
    required: Sequence[str] = (),
    extra_tools: Sequence[BuiltinTool] = (),
) -> AsyncGenerator[AgentTools]:
    """Opens the tools of an agent. Without an agent, opens all tools of the host. `required`: servers without
    which the agent does not start. `extra_tools`: built-in tools in addition to those for files and commands.

    Raises `ConfigError` if a server that the agent names is not configured or may not be started.
    """
    workspace = Workspace(folders.folder, folders.extra)
    shell = Shell(workspace, watchdog)
    files = file_tools(workspace)

    def may_read(path: Path) -> bool:
        return not workspace.is_private(path) and host.is_unrestricted(files[0], {PATH: str(path)})

    tools = [*files, *find_tools(workspace, watchdog, may_read), *shell.tools(), *extra_tools]
    try:
        if agent is None:
            yield AgentTools(host.toolbox(tools), host, tuple(required))
            return
        needed = tuple(dict.fromkeys((*agent.required_servers, *required)))
        named = agent.servers if agent.servers is not None else _startable(host)
        names = [name for each in named for name in ((each,) if isinstance(each, str) else each)]
        # As for configured servers: an approved entry starts the same program in whatever folder the person
        # works.
        folder = project_of(agent.path) if agent.scope in IN_PROJECT else "own"
        async with host.for_agent(
            named,
            required=needed,
            has_tool=partial(agent.has_tool, servers=names),
            disallowed=agent.disallowed_tools,
            start_in=folder,
        ) as servers:
            own = [tool for tool in tools if agent.has_tool(tool.name)]
            resources = agent.has_resources(host.configuration.servers)
            toolbox = host.toolbox(own, resources=resources, servers=servers)
            yield AgentTools(toolbox, servers, needed)
    finally:
        await shell.close()


def _startable(host: Host) -> list[str]:
    servers = host.configuration.servers
    return [name for name, server in servers.items() if server.eligibility == "ready"]


def _not_connected(name: str, view: ServerStatus | None) -> NotConnected:
    status, reason = ("missing", None) if view is None else (view.status, view.reason)
    return NotConnected(name, status, reason, hint="The agent requires this server.")
