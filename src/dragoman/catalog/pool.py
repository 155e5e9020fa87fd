"""The pool: the tools of all servers, each found by its name.

Orders tools by name, and computes what changed when a list was read again. `naming.py` makes the names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, structs

from dragoman.catalog.listing import PROBLEM_LIMIT, ToolList
from dragoman.catalog.naming import Key, assign, near
from dragoman.catalog.prompts import PromptDefinition
from dragoman.catalog.resources import Template
from dragoman.catalog.tools import ServerTool, Tool
from dragoman.cleaning import one_line
from dragoman.errors import UnknownTool
from dragoman.names import QualifiedName, ServerName, WireToolName
from dragoman.wire.messages import ToolDefinition

Admit = Callable[[ServerTool | PromptDefinition | Template], str | None]
"""Why something that a server offers is left out; None if it is not."""


class Difference(Struct, frozen=True):
    """What a new list changed, by the tools' wire names."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class Catalog:
    """The pool of all servers' tools. Order is by name, so it is the same every time."""

    def __init__(self, admit: Admit | None = None) -> None:
        self.admit = admit
        self._lists: dict[ServerName, ToolList] = {}
        self._wanted: dict[ServerName, Callable[[str], bool]] = {}
        self._servers: frozenset[str] = frozenset()
        self._beside: frozenset[str] = frozenset()
        self._tools: dict[str, ServerTool] | None = None
        self._problems: dict[ServerName, list[str]] = {}
        self._left_out: dict[str, str] = {}
        """Tools that were not admitted, and why."""

    def expect(self, servers: Iterable[str]) -> None:
        """Which servers are configured, connected or not: names of tools depend on all of them."""
        self._servers = frozenset(servers)
        self._tools = None

    def stand_beside(self, servers: Iterable[str]) -> None:
        """Servers of another pool that is used together with this one: names tell them apart, too."""
        self._beside = frozenset(servers)
        self._tools = None

    def limit(self, server: ServerName, wanted: Callable[[str], bool]) -> None:
        """Of this server only the wanted tools, by wire name, are listed and can be called."""
        self._wanted[server] = wanted

    def set_list(self, server: ServerName, tools: ToolList) -> Difference:
        wanted = self._wanted.get(server)
        if wanted is not None:
            kept = tuple(definition for definition in tools.definitions if wanted(definition.name))
            tools = structs.replace(tools, definitions=kept)
        before = self._lists.get(server)
        self._lists[server] = tools
        self._tools = None
        return Difference() if before is None else _difference(before, tools)

    def forget(self, server: ServerName) -> None:
        self._wanted.pop(server, None)
        self.clear(server)

    def clear(self, server: ServerName) -> None:
        """Drops what a server offered; what is wanted of it stays."""
        self._lists.pop(server, None)
        self._tools = None

    def listed(self, server: ServerName) -> ToolList:
        return self._lists.get(server, ToolList())

    def problems(self, server: ServerName) -> tuple[str, ...]:
        """What had to be left out or renamed, and why."""
        self._pool()
        return (*self.listed(server).problems, *self._problems.get(server, ()))

    def definitions(self, server: ServerName) -> tuple[ToolDefinition, ...]:
        return self.listed(server).definitions

    def count(self, server: ServerName) -> int:
        """How many tools of this server can be called."""
        if self.admit is None:
            return len(self.definitions(server))
        return sum(tool.server == server for tool in self.tools())

    def tools(self) -> Iterable[ServerTool]:
        return self._pool().values()

    def find(self, name: str) -> ServerTool | None:
        return self._pool().get(name)

    def resolve(self, name: str) -> ServerTool:
        pool = self._pool()
        tool = pool.get(name)
        if tool is None:
            offered = (other for other, each in pool.items() if each.is_for_models)
            raise UnknownTool(name, near=near(name, offered), left_out=self._left_out.get(name))
        return tool

    def _pool(self) -> dict[str, ServerTool]:
        if self._tools is None:
            definitions: dict[Key, ToolDefinition] = {
                (server, WireToolName(definition.name)): definition
                for server, listed in self._lists.items()
                for definition in listed.definitions
            }
            names = assign(definitions, self._servers | self._beside)
            self._problems, self._left_out = {}, {}
            for key in sorted(names.renamed):
                self._tell(
                    key[0],
                    f"tool {one_line(key[1], 80)!r} is called {names.of[key]}: "
                    "another tool would have the same name",
                )
            named = sorted((name, key) for key, name in names.of.items())
            tools: dict[str, ServerTool] = {
                name: ServerTool(key[0], name, definitions[key]) for name, key in named
            }
            if self.admit is not None:
                tools = {name: tool for name, tool in tools.items() if self._is_admitted(tool, self.admit)}
            self._tools = tools
        return self._tools

    def _is_admitted(self, tool: ServerTool, admit: Admit) -> bool:
        reason = admit(tool)
        if reason is not None:
            self._left_out[tool.name] = reason
            self._tell(tool.server, f"tool {one_line(tool.wire_name, 80)!r} is left out: {reason}")
        return reason is None

    def _tell(self, server: ServerName, problem: str) -> None:
        told = self._problems.setdefault(server, [])
        if len(told) < PROBLEM_LIMIT:
            told.append(problem)


def _difference(before: ToolList, after: ToolList) -> Difference:
    old = {definition.name: definition for definition in before.definitions}
    new = {definition.name: definition for definition in after.definitions}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(
            name
            for name, definition in new.items()
            if name in old and definition != old[name] and _digest(definition) != _digest(old[name])
        ),
    )


def _digest(definition: ToolDefinition) -> str:
    return Tool(ServerName(""), QualifiedName(""), definition).digest
