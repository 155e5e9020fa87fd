"""Completions while the person types: commands, prompts of servers, files and resources.

The kind of completion is decided from the text alone (`completion_at`); finding completions may read a folder
or request them from a server.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, structs

from dragoman.catalog.prompts import Prompt
from dragoman.cleaning import is_safe, one_line
from dragoman.errors import DragomanError
from dragoman.host import Host

LIMIT: Final = 30
SERVER_SECONDS: Final = 2.0
"""How long a server may take to complete an argument."""
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(\S*)$")
_COMMAND: Final = re.compile(r"^/(\S*)$")
_ARGUMENT: Final = re.compile(r"^/(\S+) (?:.*\s)?(\S*)$")


class CompletionRequest(Struct, frozen=True):
    """The word to complete, and its kind."""

    kind: Literal["command", "argument", "mention"]
    word: str
    """The typed part of the word."""
    command: str = ""
    """The command that an argument is for."""


class CompletionItem(Struct, frozen=True):
    text: str
    """The text that replaces the word."""
    about: str = ""
    is_whole: bool = True
    """False for a folder, after which the person continues the path."""


def completion_at(before: str) -> CompletionRequest | None:
    """The completion to request for the text before the cursor; None if nothing can be completed there."""
    if found := _MENTION.search(before):
        return CompletionRequest("mention", found[1])
    if "\n" in before:
        return None
    if found := _COMMAND.match(before):
        return CompletionRequest("command", found[1])
    if found := _ARGUMENT.match(before):
        return CompletionRequest("argument", found[2], found[1])
    return None


def fitting(word: str, choices: Iterable[CompletionItem]) -> list[CompletionItem]:
    """The choices that begin with the word, then those that contain it."""
    folded = word.lower()
    first: list[CompletionItem] = []
    others: list[CompletionItem] = []
    for choice in choices:
        text = choice.text.lower()
        if folded in text and is_safe(choice.text):
            (first if text.startswith(folded) else others).append(choice)
    return [*first, *others][:LIMIT]


def prompt_command(prompt: Prompt) -> str:
    """The command for a prompt: `server:prompt`."""
    return f"{prompt.server}:{prompt.wire_name}"


class Completer:
    def __init__(self, host: Host, folder: Path, commands: Sequence[CompletionItem]) -> None:
        self._host = host
        self._folder = folder
        self._commands = commands

    async def choices(self, wanted: CompletionRequest) -> list[CompletionItem]:
        match wanted.kind:
            case "command":
                return fitting(wanted.word, [*self._commands, *await self._prompts()])
            case "argument":
                return fitting(wanted.word, await self._arguments(wanted))
            case "mention":
                files = await asyncio.to_thread(files_at, self._folder, wanted.word)
                found = [*files, *fitting(wanted.word, await self._resources())][:LIMIT]
                return [each for each in map(as_mention, found) if each is not None]

    async def _prompts(self) -> list[CompletionItem]:
        found = await self._host.prompts.list()
        return [CompletionItem(prompt_command(each), one_line(each.description, 80)) for each in found.items]

    async def _resources(self) -> list[CompletionItem]:
        found = await self._host.resources.list()
        return [
            CompletionItem(f"{each.server}:{each.uri}", one_line(each.title or each.name, 60))
            for each in found.items
        ]

    async def _arguments(self, wanted: CompletionRequest) -> list[CompletionItem]:
        if wanted.command == "mcp":
            servers = [CompletionItem(name, view.status) for name, view in self._host.servers.items()]
            return [*(CompletionItem(word) for word in ("enable", "disable", "reconnect", "all")), *servers]
        prompt = await find_prompt(self._host, wanted.command)
        if prompt is None or not prompt.arguments:
            return []
        name, given, value = wanted.word.partition("=")
        if not given:
            return [
                CompletionItem(f"{each.name}=", one_line(each.description, 80), False)
                for each in prompt.arguments
            ]
        try:
            async with asyncio.timeout(SERVER_SECONDS):
                found = await self._host.prompts.complete(prompt.name, name, value)
        except (DragomanError, TimeoutError):
            return []
        return [CompletionItem(f"{name}={_quoted(each)}") for each in found.values]


def as_mention(item: CompletionItem) -> CompletionItem | None:
    """The choice as one mention, in quotes if it has blanks. Without quotes, the text after a blank in a name
    that a server or a repository chose could be a mention of another file. None if the choice cannot be
    written as one mention."""
    if not any(map(str.isspace, item.text)):
        return item
    if '"' in item.text or not item.is_whole:
        return None
    return structs.replace(item, text=f'"{item.text}"')


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


async def find_prompt(host: Host, command: str) -> Prompt | None:
    """The prompt with the command `server:prompt` or with this qualified name."""
    for prompt in (await host.prompts.list()).items:
        if command in (prompt_command(prompt), prompt.name):
            return prompt
    return None


def files_at(folder: Path, word: str) -> list[CompletionItem]:
    """Files and folders whose path begins with the word; hidden ones only if the word has the dot."""
    base, _, beginning = word.rpartition("/")
    begin = f"{base}/" if base or word.startswith("/") else ""
    try:
        entries = sorted((folder / Path(begin).expanduser()).iterdir(), key=lambda path: path.name)
    except OSError:
        return []
    found: list[CompletionItem] = []
    for path in entries:
        is_hidden = path.name.startswith(".") and not beginning.startswith(".")
        if path.name.lower().startswith(beginning.lower()) and not is_hidden and is_safe(path.name):
            is_folder = path.is_dir()
            found.append(CompletionItem(f"{begin}{path.name}{'/' if is_folder else ''}", "", not is_folder))
        if len(found) == LIMIT:
            break
    return found
