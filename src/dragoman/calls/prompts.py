"""Prompts of all servers: listed under one name each, filled in, completed.

I own: what a program does with prompts, and finding one by its qualified name. The grammar of commands and
cleaning are `catalog/prompts.py`'s.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from dragoman.calls.asking import Asking, Listed, Servers
from dragoman.calls.completion import complete
from dragoman.catalog.commands import Command, find, parse_command
from dragoman.catalog.naming import assign
from dragoman.catalog.prompts import (
    Completion,
    Prompt,
    PromptDefinition,
    PromptResult,
    read_prompt_result,
)
from dragoman.clock import Clock
from dragoman.names import ServerName, WireToolName


class Prompts:
    """What `Host.prompts` is."""

    def __init__(self, servers: Servers, clock: Clock) -> None:
        self._servers = servers
        self._asking = Asking(servers, clock)

    async def list(self, server: str | None = None, *, fresh: bool = False) -> Listed[Prompt]:
        """The prompts of one server, or of all. `fresh`: asked for now, whatever is remembered."""
        listed = await self._asking.listed(self._servers.lists.prompts, server, fresh=fresh)
        return Listed(self._named(listed.items), listed.problems)

    async def get(
        self, name: str, arguments: Mapping[str, str] | None = None, *, timeout_seconds: float | None = None
    ) -> PromptResult:
        """The prompt's messages, for a model. `CallError` if there is no such prompt."""
        prompt, given = await self.find(name), arguments or {}
        prompt.check(given)
        reply = await self._asking.ask(
            prompt.server,
            "prompts/get",
            {"name": prompt.wire_name, "arguments": dict(given)},
            read_prompt_result,
            about=prompt.name,
            timeout_seconds=timeout_seconds,
        )
        return PromptResult(
            server=prompt.server,
            name=prompt.name,
            description=reply.description,
            messages=reply.messages,
            problems=reply.problems,
        )

    async def run(self, line: str) -> PromptResult:
        """What a command line such as `/mcp__server__prompt word "two words"` comes to."""
        command = await self.parse(line)
        return await self.get(command.prompt.name, command.arguments)

    async def parse(self, line: str) -> Command:
        return parse_command(line, (await self.list()).items)

    async def find(self, name: str) -> Prompt:
        """The prompt of this name; one that was read before is found without asking anybody."""
        known = [prompt for prompt in self._known() if prompt.name == name]
        return known[0] if known else find(name, (await self.list()).items)

    async def complete(
        self, name: str, argument: str, value: str = "", *, given: Mapping[str, str] | None = None
    ) -> Completion:
        """What may be filled in for an argument; nothing where the server does not know."""
        prompt = await self.find(name)
        ref = {"type": "ref/prompt", "name": prompt.wire_name}
        return await complete(self._asking, prompt.server, ref, argument, value, given or {})

    def _known(self) -> tuple[Prompt, ...]:
        return self._named(tuple(self._read_before().values()))

    def _read_before(self) -> dict[tuple[ServerName, WireToolName], PromptDefinition]:
        lists = self._servers.lists.prompts
        known = ((server, self._servers.session_of(server)) for server in self._servers.names())
        read = (lists.known(server, session) for server, session in known if session is not None)
        return {_key(item): item for each in read if each is not None for item in each.items}

    def _named(self, definitions: tuple[PromptDefinition, ...]) -> tuple[Prompt, ...]:
        """Names depend on all prompts that are known, whichever of them are wanted."""
        wanted = {_key(definition): definition for definition in definitions}
        names = assign({**self._read_before(), **wanted}, self._servers.naming_servers())
        return tuple(
            Prompt(name=names.of[key], **structs.asdict(definition)) for key, definition in wanted.items()
        )


def _key(definition: PromptDefinition) -> tuple[ServerName, WireToolName]:
    return definition.server, WireToolName(definition.wire_name)
