"""Prompts of all servers: listed under one name each, filled in, completed.

Every request is judged (`requests.py`). The grammar of commands is in `catalog/commands.py`, cleaning in
`catalog/prompts.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, structs

from dragoman.calls.completion import complete
from dragoman.calls.input_rounds import in_thread_if_large
from dragoman.calls.requests import GET_PROMPT, LIST_PROMPTS, PROMPT, Requests
from dragoman.calls.sending import Listed, Sender
from dragoman.catalog.commands import PromptCommand, find, read_arguments, split_command
from dragoman.catalog.naming import assign, prefix
from dragoman.catalog.prompts import (
    Completion,
    Prompt,
    PromptDefinition,
    PromptMessage,
    PromptReply,
    PromptResult,
    read_prompt_result,
)
from dragoman.content.blocks import TextBlock
from dragoman.content.redact import BASE64_FIELDS, Redactor
from dragoman.interaction import Caller
from dragoman.names import ServerName, WireToolName
from dragoman.servers.registry import ServerRegistry


class Prompts:
    """What `Host.prompts` is. `PermissionRefused` where a rule or a hook denies a request."""

    def __init__(self, servers: ServerRegistry, requests: Requests) -> None:
        self._servers = servers
        self._requests = requests
        self._sender = Sender(servers)

    def for_caller(self, caller: Caller) -> Prompts:
        """The same prompts, requested on behalf of another caller."""
        return Prompts(self._servers, self._requests.for_caller(caller))

    async def list(self, server: str | None = None, *, fresh: bool = False) -> Listed[Prompt]:
        """The prompts of one server, or of all. `fresh`: requested now, not taken from memory."""
        listed = await self._requests.listed(
            LIST_PROMPTS, self._sender, lambda each: each.prompts, server, fresh=fresh
        )
        return Listed(self._named(listed.items), listed.problems)

    async def get(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float | None = None,
        call_id: str | None = None,
    ) -> PromptResult:
        """The prompt's messages, for a model. `CallError` if there is no such prompt. `call_id`: identifies
        the request in hooks and questions."""
        prompt, given = await self.find(name), arguments or {}
        prompt.check(given)

        async def perform(asked: Mapping[str, Any]) -> PromptResult:
            return await self._get(prompt, asked, timeout_seconds)

        asked = {"server": prompt.server, "name": prompt.wire_name, "arguments": dict(given)}
        return await self._requests.make(GET_PROMPT, asked, perform, PROMPT, call_id)

    async def _get(
        self, prompt: Prompt, asked: Mapping[str, Any], timeout_seconds: float | None
    ) -> PromptResult:
        server = self._sender.known(asked["server"])
        redact = server.redactor

        def read(raw: Raw) -> tuple[str, PromptReply]:
            kind, reply = read_prompt_result(raw)
            return kind, _covered(reply, redact) if redact else reply

        reply = await self._sender.send(
            server,
            "prompts/get",
            {"name": asked["name"], "arguments": asked.get("arguments", {})},
            in_thread_if_large(read),
            about=prompt.name,
            timeout_seconds=timeout_seconds,
        )
        return PromptResult(
            server=server.name,
            name=prompt.name,
            description=reply.description,
            messages=reply.messages,
            problems=reply.problems,
        )

    async def run(self, line: str) -> PromptResult:
        """The messages of the prompt in a command line such as `/mcp__server__prompt word "two words"`."""
        command = await self.parse(line)
        return await self.get(command.prompt.name, command.arguments)

    async def parse(self, line: str) -> PromptCommand:
        """Which prompt a command line calls, and with what."""
        name, rest = split_command(line)
        prompt = await self.find(name)
        return PromptCommand(prompt, read_arguments(prompt, rest))

    async def find(self, name: str) -> Prompt:
        """The prompt of this name; one that was read before is found without a request."""
        known = [prompt for prompt in self._known() if prompt.name == name]
        if known and not self._requests.leaves_out(LIST_PROMPTS, known[0].server):
            return known[0]
        owners = {prompt.server for prompt in known}  # a name that was cut does not begin with its server's
        for server in sorted(self._servers):
            # A list of all servers leaves these out; naming one is refused, or asked about.
            is_meant = server in owners or name.startswith(prefix(server))
            if is_meant and self._requests.leaves_out(LIST_PROMPTS, server):
                await self.list(server)
        return find(name, (*(await self.list()).items, *self._known()))

    async def complete(
        self, name: str, argument: str, value: str = "", *, given: Mapping[str, str] | None = None
    ) -> Completion:
        """What may be filled in for an argument; nothing where the server does not know."""
        prompt = await self.find(name)
        subject = {"server": prompt.server, "name": prompt.wire_name}
        return await complete(self._requests, self._sender, subject, argument, value, given or {})

    def _known(self) -> tuple[Prompt, ...]:
        return self._named(tuple(self._read_before().values()))

    def _read_before(self) -> dict[tuple[ServerName, WireToolName], PromptDefinition]:
        known = (server.prompts.known for server in self._servers.values() if server.session() is not None)
        return {_key(item): item for each in known if each is not None for item in each.items}

    def _named(self, definitions: tuple[PromptDefinition, ...]) -> tuple[Prompt, ...]:
        """Names depend on all prompts that are known, whichever of them are wanted."""
        wanted = {_key(definition): definition for definition in definitions}
        names = assign({**self._read_before(), **wanted}, self._servers.naming_servers())
        return tuple(
            Prompt(name=names.of[key], **structs.asdict(definition)) for key, definition in wanted.items()
        )


def _covered(found: PromptReply, redact: Redactor) -> PromptReply:
    """Without secrets, also those that are spread over several messages."""
    found = redact.struct(found, _NOT_REDACTED)
    contents = [message.content for message in found.messages]
    texts = iter(redact.texts([each.text for each in contents if isinstance(each, TextBlock)]))
    messages = tuple(
        PromptMessage(message.role, TextBlock(next(texts)))
        if isinstance(message.content, TextBlock)
        else message
        for message in found.messages
    )
    return structs.replace(found, messages=messages)


_NOT_REDACTED: Final = BASE64_FIELDS | {"role"}


def _key(definition: PromptDefinition) -> tuple[ServerName, WireToolName]:
    return definition.server, WireToolName(definition.wire_name)
