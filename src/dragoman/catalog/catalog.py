"""The catalogue: the tools of all servers, each found by its name.

Orders tools by name, and computes what changed when a list was read again. `naming.py` makes the names.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import cast

from msgspec import Struct, structs

from dragoman.catalog.listing import PROBLEM_LIMIT, ToolList
from dragoman.catalog.naming import Key, assign, near
from dragoman.catalog.prompts import PromptDefinition
from dragoman.catalog.resources import ResourceTemplate
from dragoman.catalog.tools import ServerTool, Tool, is_same
from dragoman.cleaning import one_line
from dragoman.errors import UnknownTool
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.messages import ToolDefinition

Admit = Callable[[ServerTool | PromptDefinition | ResourceTemplate], str | None]
"""Returns why something that a server offers is left out; None if it is not."""
Denied = Callable[[Iterable[Tool]], Collection[str]]
"""The names of the tools that models are not shown."""


class Difference(Struct, frozen=True):
    """What a new list changed, by the tools' wire names."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


class ServerTools:
    """The tools that one server lists. The server keeps them; the catalogue gives them their names."""

    def __init__(self, server: ServerName, is_offered: Callable[[str], bool] | None = None) -> None:
        """`is_offered`: whether the tool of this wire name is listed and can be called."""
        self.server = server
        self._is_offered = is_offered
        self.listing = ToolList()
        self.named: dict[str, ServerTool] = {}
        """The named tools, by wire name. An unchanged definition keeps its `Tool` object, and with it the
        values that were computed from it."""
        self.naming_problems: list[str] = []

    def set(self, listing: ToolList) -> Difference:
        if self._is_offered is not None:
            kept = tuple(definition for definition in listing.items if self._is_offered(definition.name))
            listing = structs.replace(listing, items=kept)
        before, self.listing = self.listing, listing
        return _difference(before, listing) if before.items else Difference()

    def tool(self, name: QualifiedName, definition: ToolDefinition) -> ServerTool:
        """The tool under this name: the existing object if name and definition have not changed."""
        known = self.named.get(definition.name)
        if known is not None and known.name == name and _is_same_definition(known.definition, definition):
            return known
        return ServerTool(self.server, name, definition)

    def report(self, problem: str) -> None:
        if len(self.naming_problems) < PROBLEM_LIMIT:
            self.naming_problems.append(problem)


class Catalog:
    """The tools of all servers by name. Order is by name, so it is the same every time."""

    def __init__(self, admit: Admit | None = None) -> None:
        self.admit = admit
        self._sources: dict[ServerName, ServerTools] = {}
        self._servers: frozenset[str] = frozenset()
        self._other_servers: frozenset[str] = frozenset()
        self._tools: dict[str, ServerTool] | None = None
        """The names of all tools; computed when needed, None after a change."""
        self._left_out: dict[str, str] = {}
        """Tools that were not admitted, and why."""

    def set_servers(self, servers: Iterable[str]) -> None:
        """Which servers are configured, connected or not: names of tools depend on all of them."""
        self._servers = frozenset(servers)
        self._tools = None

    def set_other_servers(self, servers: Iterable[str]) -> None:
        """Servers of another pool that is used together with this one: names are unique over both."""
        self._other_servers = frozenset(servers)
        self._tools = None

    def add(self, tools: ServerTools) -> None:
        self._sources[tools.server] = tools
        self._tools = None

    def remove(self, tools: ServerTools) -> None:
        if self._sources.get(tools.server) is tools:
            del self._sources[tools.server]
            self._tools = None

    def changed(self) -> None:
        """Must be called after one of the lists has changed."""
        self._tools = None

    def problems(self, tools: ServerTools) -> tuple[str, ...]:
        """The tools that were left out or renamed, and why."""
        if not tools.listing.items:  # the names of all other tools need not be known
            return tools.listing.problems
        self._pool()
        return (*tools.listing.problems, *tools.naming_problems)

    def count(self, tools: ServerTools) -> int:
        """How many tools of this server can be called."""
        if self.admit is None or not tools.listing.items:
            return len(tools.listing.items)
        return sum(tool.server == tools.server for tool in self.tools())

    def tools(self) -> Iterable[ServerTool]:
        return self._pool().values()

    def find(self, name: str) -> ServerTool | None:
        tools = self._tools
        return (self._pool() if tools is None else tools).get(name)

    def tool_of(self, server: str, wire_name: str) -> ServerTool | None:
        """The tool with this wire name, whatever its qualified name is."""
        pool, source = self._pool(), self._sources.get(ServerName(server))
        tool = None if source is None else source.named.get(wire_name)
        return None if tool is None else pool.get(tool.name)

    def resolve(self, name: str, denied: Denied = lambda tools: frozenset()) -> ServerTool:
        """The tool of this name. `denied`: tools whose names are not suggested in the error."""
        pool = self._pool()
        tool = pool.get(name)
        if tool is None:
            offered = {other: each for other, each in pool.items() if each.is_for_models}
            hidden = denied(offered.values())
            suggested = (other for other in offered if other not in hidden)
            raise UnknownTool(name, near=near(name, suggested), left_out=self._left_out.get(name))
        return tool

    def _pool(self) -> dict[str, ServerTool]:
        if self._tools is None:
            self._tools = self._name_all()
        return self._tools

    def _name_all(self) -> dict[str, ServerTool]:
        definitions = cast(
            "dict[Key, ToolDefinition]",
            {
                (server, definition.name): definition
                for server, tools in self._sources.items()
                for definition in tools.listing.items
            },
        )
        names = assign(definitions, self._servers | self._other_servers)
        self._left_out = {}
        for source in self._sources.values():
            source.naming_problems = []
        for key in sorted(names.renamed):
            self._sources[key[0]].report(
                f"tool {one_line(key[1], 80)!r} is called {names.of[key]}: "
                "another tool would have the same name"
            )
        tools: dict[str, ServerTool] = {
            name: self._sources[key[0]].tool(name, definitions[key])
            for key, name in sorted(names.of.items(), key=itemgetter(1))
        }
        for source in self._sources.values():
            source.named = {}
        for tool in tools.values():
            self._sources[tool.server].named[tool.definition.name] = tool
        if self.admit is not None:
            tools = {name: tool for name, tool in tools.items() if self._is_admitted(tool, self.admit)}
        return tools

    def _is_admitted(self, tool: ServerTool, admit: Admit) -> bool:
        reason = admit(tool)
        if reason is not None:
            self._left_out[tool.name] = reason
            self._sources[tool.server].report(f"tool {one_line(tool.wire_name, 80)!r} is left out: {reason}")
        return reason is None


def _is_same_definition(old: ToolDefinition, new: ToolDefinition) -> bool:
    if old is new:
        return True
    # 1 and true are equal in Python, and different in JSON.
    return old == new and is_same(old.annotations, new.annotations) and is_same(old.meta, new.meta)


def _difference(before: ToolList, after: ToolList) -> Difference:
    old = {definition.name: definition for definition in before.items}
    new = {definition.name: definition for definition in after.items}
    return Difference(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(
            name
            for name, definition in new.items()
            if name in old
            and not _is_same_definition(old[name], definition)
            and _digest(definition) != _digest(old[name])
        ),
    )


def _digest(definition: ToolDefinition) -> str:
    return Tool(ServerName(""), QualifiedName(""), definition).digest
