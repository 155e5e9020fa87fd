"""Mentions in a message: `@path` adds a file, `@server:uri` a resource, behind it, marked as data."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

from dragoman.cleaning import for_model, one_line
from dragoman.errors import DragomanError
from dragoman.host import Host

TEXT_LIMIT: Final = 60_000
"""Characters of one file or resource; the model reads the rest with its tools."""
MENTION_LIMIT: Final = 10
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(\S+)")


def mentioned(text: str) -> list[str]:
    """What is mentioned, each once, in order."""
    words = (word.rstrip(".,;:!?)") for word in _MENTION.findall(text))
    return list(dict.fromkeys(word for word in words if word))[:MENTION_LIMIT]


async def expanded(text: str, host: Host, folder: Path) -> tuple[str, list[str]]:
    """The message with what it mentions, and in words what could not be added."""
    added: list[str] = []
    problems: list[str] = []
    for word in mentioned(text):
        server, _, uri = word.partition(":")
        try:
            if server in host.servers and uri:
                found = await host.resources.read(server, uri)
                added.append(_marked("resource", word, found.text))
            elif (content := await asyncio.to_thread(_read, folder, word)) is not None:
                added.append(_marked("file", word, content))
        except (DragomanError, OSError, RuntimeError, ValueError) as error:
            problems.append(f"@{one_line(word, 100)} was not added: {error}")
    return "\n\n".join([text, *added]), problems


def _marked(kind: str, name: str, text: str) -> str:
    content = for_model(text, TEXT_LIMIT)
    return f'<{kind} name="{one_line(name, 500)}">\n{content}\n</{kind}>'


def _read(folder: Path, name: str) -> str | None:
    """The beginning of a file; None if there is none of that name."""
    path = folder / Path(name).expanduser()
    if not path.is_file():
        return None
    with path.open("rb") as file:
        data = file.read(4 * TEXT_LIMIT)
    if b"\0" in data[:1024]:
        raise ValueError("it is not a text")
    return data.decode("utf-8", "replace")
