"""The tools of one conversation, as its model sees them.

Decides which tools the model is given, in an order that stays the same (for prompt caches), which are
deferred, and offers `tool_search`, by which the model finds them. A found tool stays. The host has the tools
and makes the calls; `catalog/deferral.py` decides about deferral, `catalog/search.py` ranks, and
`catalog/overview.py` describes tools.

No tool is inserted before one that was shown, and no two shown tools change places. A tool that is removed
leaves the others in place, and gets its old place when it is added again. A tool whose definition becomes
much larger than the one that was shown is removed, and shown again when it is found by a search, so that a
server cannot fill the context later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from dragoman.agent_servers import HasTools
from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.calls.progress import OnProgress
from dragoman.calls.turn import call_all_in_turn
from dragoman.catalog.deferral import Budget, divide
from dragoman.catalog.instructions import InstructionsDelta, sections
from dragoman.catalog.overview import described, enumerated, overview
from dragoman.catalog.search import RESULT_LIMIT, Index, select
from dragoman.catalog.tokens import cost_of
from dragoman.catalog.tools import FOR_APPS, BuiltinTool, Tool
from dragoman.cleaning import one_line
from dragoman.errors import ConfigError, UnknownTool
from dragoman.servers.status import ServerStatus

SEARCH: Final = "tool_search"
WAIT_SECONDS: Final = 5.0
"""How long a search waits for servers that are still connecting."""
OVERVIEW_PERCENT: Final = 1
"""The share of the context that the list of deferred tools may take."""
GONE_LIMIT: Final = 10_000
"""How many removed tools keep their place, in case they are added again."""
GROWTH: Final = 2
GROWTH_TOKENS: Final = 200
"""The growth limits of a shown tool: the factor, and the number of additional tokens."""


class SearchResult(Struct, frozen=True):
    """The result of a search."""

    tools: tuple[Tool, ...] = ()
    """The tools found, best first; the model has them from this point on."""
    unknown: tuple[str, ...] = ()
    """Names in a `select:` query that no tool, or more than one tool, has."""
    connecting: tuple[str, ...] = ()
    """Servers that did not connect in time, so that their tools could not be searched."""
    failed: Mapping[str, str] = {}
    """Servers that cannot be reached, and why."""


class Toolbox:
    """A conversation's tools. Made by `Host.toolbox`."""

    def __init__(
        self, host: HasTools, builtins: Iterable[BuiltinTool] = (), *, budget: Budget | None = None
    ) -> None:
        self._host = host
        self._budget = budget or Budget()
        self._builtins: dict[str, BuiltinTool] = {SEARCH: self._make_search()}
        for tool in builtins:
            if tool.name in self._builtins:
                raise ConfigError(f"there are two built-in tools named {one_line(tool.name, 80)!r}")
            self._builtins[tool.name] = tool
        self._places: dict[str, int] = {
            name: 0 for name, tool in self._builtins.items() if name != SEARCH and not tool.defers
        }
        """Every tool that was shown, in the order in which they were shown, including removed tools, with its
        cost at that time."""
        self._outgrown: frozenset[str] = frozenset()
        """Tools that were shown and are not shown any more, because their cost has grown too much."""
        self._deferred: dict[str, None] = {name: None for name, tool in self._builtins.items() if tool.defers}
        """Every tool that was not shown at first, also those that were loaded later."""
        self._delta = InstructionsDelta()
        self._index: tuple[Index, Sequence[Tool]] = (Index(()), ())

    @property
    def builtin_tools(self) -> tuple[BuiltinTool, ...]:
        """The built-in tools, including the search tool."""
        return tuple(self._builtins.values())

    # What the model sees.

    def tools(self) -> list[Tool]:
        """The tools to give the model: built-in tools, tools that are shown from the start, and tools that
        were loaded since."""
        pool = self._look()
        return [pool[name] for name in self._places if name in pool and name not in self._outgrown]

    def deferred(self) -> list[Tool]:
        """The tools that the model has to look for, by name."""
        pool = self._look()
        shown = self._places.keys() - self._outgrown
        return [pool[name] for name in sorted(self._deferred) if name in pool and name not in shown]

    def overview(self) -> str:
        """Text for the system prompt: the tools that can be found by searching. Empty if nothing was
        deferred.

        It does not change when tools are loaded, and is short: names if they are few, else servers.
        """
        pool = self._look()
        waiting = [pool[name] for name in sorted(self._deferred) if name in pool]
        if not waiting:
            return ""
        limit = self._budget.context_tokens * OVERVIEW_PERCENT // 100
        return f"More tools can be loaded with {SEARCH}:\n" + overview(waiting, limit)

    def instructions(self) -> str:
        """Text for the system prompt: the instructions of the servers, a section for each. Empty if there are
        none."""
        return sections(self._host.instructions())

    def instructions_delta(self) -> str:
        """Text for the next turn: the sections that are new, changed or removed since the last call of this
        method; all of them the first time. Empty if nothing changed."""
        return self._delta.next(self._host.instructions())

    # What the model does.

    async def search(self, query: str, *, server: str | None = None, limit: int = 5) -> SearchResult:
        """Finds tools by words, or by name (`select:name,name`), and loads them.

        Waits a few seconds for servers that are still connecting.
        """
        await self._wait_for(server)
        pool = self._look()
        searched = [
            tool for name, tool in pool.items() if name not in self._builtins or name in self._deferred
        ]
        chosen = select(query, searched)
        if chosen is not None:
            tools = [tool for tool in chosen.tools if server in (None, tool.server)]
        else:
            # In a thread: reading ten thousand definitions would block the event loop.
            tools = await asyncio.to_thread(self._rank, searched, query, server, limit)
        for tool in tools:
            self._load(tool)
        views = self._concerned(server)
        return SearchResult(
            tuple(tools),
            chosen.unknown if chosen is not None else (),
            tuple(view.name for view in views if is_connecting(view)),
            {view.name: view.reason or "" for view in views if view.status in ("failed", "needs-auth")},
        )

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnProgress | None = None,
        background_after_seconds: float | None = None,
        call_id: str | None = None,
    ) -> CallOutcome:
        """Like `Host.call`, with this conversation's built-in tools. A tool that is called is loaded.

        A tool that is for apps only does not exist for the model.
        """
        if self.is_app_tool(name):
            return outcome_of_error("", name, UnknownTool(name, left_out=FOR_APPS))
        if name not in self._places and name != SEARCH and (tool := self._look().get(name)):
            self._load(tool)
        return await self._host.call(
            name,
            arguments,
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
            builtin_tools={**self._builtins, **self._host.sign_in_tools()},
            background_after_seconds=background_after_seconds,
            call_id=call_id,
        )

    async def call_all(
        self,
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        on_progress: Sequence[OnProgress | None] = (),
    ) -> list[CallOutcome]:
        """Like `Host.call_all`, with this conversation's built-in tools."""
        pool = self._look()
        return await call_all_in_turn(
            calls, self.call, lambda name: name in pool and pool[name].is_parallel, on_progress
        )

    def is_app_tool(self, name: str) -> bool:
        """Whether there is a tool of this name that is for apps only, and not for models."""
        return name not in self._builtins and self._host.is_app_tool(name)

    # Shown and deferred tools.

    def _look(self) -> dict[str, Tool]:
        """Every tool that may be called; decides for new tools whether they are shown or deferred."""
        pool: dict[str, Tool] = {
            **self._builtins,
            **self._host.sign_in_tools(),
            **{tool.name: tool for tool in self._host.tools(include_denied=True)},
        }
        if denied := self._host.denied(pool.values()):
            pool = {name: tool for name, tool in pool.items() if name not in denied}
        self._defer_outgrown(pool)
        self._offer_search()
        known = self._places.keys() | self._deferred.keys() | {SEARCH}
        if newcomers := [tool for name, tool in pool.items() if name not in known]:
            self._admit(newcomers, pool)
        if len(known) > len(pool) + GONE_LIMIT:
            self._forget_gone(pool)
        return pool

    def _admit(self, newcomers: Sequence[Tool], pool: Mapping[str, Tool]) -> None:
        shown = [pool[name] for name in self._places if name in pool and name not in self._builtins]
        waiting = [pool[name] for name in self._deferred if name in pool and name not in self._places]
        decided = divide(newcomers, self._budget, shown=shown, deferred=waiting)
        self._deferred.update((tool.name, None) for tool in decided.deferred)
        self._offer_search()
        for tool in decided.shown:
            self._load(tool)

    def _load(self, tool: Tool) -> None:
        """Shows the tool from this point on; in its old place if it was shown before."""
        self._places[tool.name] = cost_of(tool)

    def _defer_outgrown(self, pool: Mapping[str, Tool]) -> None:
        if self._budget.never_defers:
            return
        self._outgrown = frozenset(
            name
            for name, cost in self._places.items()
            if name in pool
            and name not in self._builtins
            and cost_of(pool[name]) > GROWTH * cost + GROWTH_TOKENS
        )
        self._deferred.update(dict.fromkeys(self._outgrown))

    def _offer_search(self) -> None:
        """Offers the search tool as soon as there may be something to find, and keeps it even when nothing is
        left.

        With it, a model that is called before all servers are connected can wait for them.
        """
        if SEARCH not in self._places and (self._deferred or self._is_any_connecting()):
            self._places[SEARCH] = 0

    def _is_any_connecting(self) -> bool:
        return not self._budget.never_defers and any(map(is_connecting, self._host.servers.values()))

    def _forget_gone(self, pool: Mapping[str, Tool]) -> None:
        """Limits how many removed tools are remembered: a server could list new names without end."""
        for names in (self._places, self._deferred):
            gone = [name for name in names if name not in pool]
            for name in gone[: len(gone) // 2]:
                del names[name]

    def _rank(self, tools: Sequence[Tool], query: str, server: str | None, limit: int) -> list[Tool]:
        index, indexed = self._index
        if not _same(tools, indexed):  # lazily: most conversations never search
            index = Index(tools)
            self._index = (index, tools)
        return index.search(query, server=server, limit=limit)

    # Servers that are not connected yet.

    async def _wait_for(self, server: str | None) -> None:
        connecting = [view.name for view in self._concerned(server) if is_connecting(view)]
        if connecting:
            await self._host.ready(WAIT_SECONDS, only=connecting)

    def _concerned(self, server: str | None) -> list[ServerStatus]:
        return [view for name, view in self._host.servers.items() if server in (None, name)]

    # The built-in tool.

    def _make_search(self) -> BuiltinTool:
        return BuiltinTool(
            SEARCH,
            self._run_search,
            title="Search tools",
            description=(
                "Find and load further tools. Say what you want to do (open a pull request), or give exact "
                "names as select:name,name. Waits for servers that are still connecting. Found tools can be "
                "called from then on."
            ),
            input_schema=SEARCH_SCHEMA,
            annotations={"readOnlyHint": True, "openWorldHint": False},
            needs_permission=False,
        )

    async def _run_search(self, arguments: Mapping[str, Any]) -> str:
        query, server = str(arguments["query"]), arguments.get("server")
        if server is not None and server not in self._host.servers:
            return f"There is no server {one_line(server, 80)!r}. {self._known_servers()}"
        before = {tool.name for tool in self.tools()}
        # A whole number may be written as `5.0`.
        found = await self.search(query, server=server, limit=int(arguments.get("max_results", 5)))
        lines = [described(tool, was_loaded=tool.name in before) for tool in found.tools]
        if not found.tools:
            lines.append(f"No tool was found. {ADVICE} {self._known_servers()}")
        return "\n".join([*lines, *remarks(found)])

    def _known_servers(self) -> str:
        names = sorted(self._host.servers)
        return f"Servers: {enumerated(names)}." if names else "There are no servers."


SEARCH_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What you want to do, or select:name,name"},
        "max_results": {
            "type": "integer",
            "minimum": 1,
            "maximum": RESULT_LIMIT,
            "description": "5 if left out",
        },
        "server": {"type": "string", "description": "Only tools of this server"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
ADVICE: Final = "Try other or fewer words, words of the tool's name, or the name of its server."


def is_connecting(view: ServerStatus) -> bool:
    """Whether the server is being connected. A pending server that waits for approval, or for its first use,
    has a reason."""
    return view.status == "pending" and (view.phase is not None or not view.reason)


def _same(tools: Sequence[Tool], others: Sequence[Tool]) -> bool:
    """Whether both have the same tools: the pool creates new tool objects for each change, with mostly the
    same definitions."""
    return len(tools) == len(others) and all(
        one.definition is other.definition and one.name == other.name for one, other in zip(tools, others)
    )


def remarks(found: SearchResult) -> list[str]:
    remarks: list[str] = []
    if found.unknown:
        remarks.append(f"Not found, or not the name of one tool only: {enumerated(found.unknown)}.")
    if found.connecting:
        remarks.append(f"Still connecting, search again later: {enumerated(found.connecting)}.")
    if found.failed:
        failed = found.failed.items()  # a reason may begin with the name of the server
        named = [f"{name} ({one_line(reason.removeprefix(f'{name}: '), 100)})" for name, reason in failed]
        remarks.append(f"Not available: {enumerated(named)}.")
    return remarks
