"""Mentions in a message: `@path` adds a file, `@server:uri` a resource, behind it, marked as data."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Final

from dragoman.agent.builtin.files import file_tools
from dragoman.agent.builtin.workspace import PATH, Workspace
from dragoman.cleaning import for_model, one_line
from dragoman.errors import DragomanError
from dragoman.host import Host

TEXT_LIMIT: Final = 60_000
"""Characters of one file or resource; the model reads the rest with its tools."""
MENTION_LIMIT: Final = 10
_MARK: Final = re.compile(r"<(?=\s*/?\s*(?:file|resource)\b)", re.IGNORECASE)
"""What could end the mark around a file or resource, or begin another."""
_MENTION: Final = re.compile(r"(?:^|(?<=\s))@(\S+)")


def mentioned(text: str) -> list[str]:
    """What is mentioned, each once, in order."""
    words = (word.rstrip(".,;:!?)") for word in _MENTION.findall(text))
    return list(dict.fromkeys(word for word in words if word))[:MENTION_LIMIT]


async def expanded(text: str, host: Host, folder: Path) -> tuple[str, list[str]]:
    """The message with what it mentions, and in words what could not be added."""
    read_tool = file_tools(Workspace(folder))[0]
    added: list[str] = []
    problems: list[str] = []
    for word in mentioned(text):
        server, _, uri = word.partition(":")
        try:
            if server in host.servers and uri:
                found = await host.resources.read(server, uri)
                added.append(_marked("resource", word, found.text))
            elif (path := _file(folder, word)) is not None:
                if host.is_denied(read_tool, {PATH: str(path)}):
                    raise ValueError("a rule about Read denies it")
                content = await asyncio.to_thread(_read, path)
                added.append(_marked("file", word, content))
        except (DragomanError, OSError, RuntimeError, ValueError) as error:
            problems.append(f"@{one_line(word, 100)} was not added: {error}")
    return "\n\n".join([text, *added]), problems


def _marked(kind: str, name: str, text: str) -> str:
    content = _MARK.sub("&lt;", for_model(text, TEXT_LIMIT))
    return f'<{kind} name="{one_line(name, 500)}">\n{content}\n</{kind}>'


def _file(folder: Path, name: str) -> Path | None:
    """The file without links; None if there is none of that name. Raises `ValueError` for a link in the
    folder that leads out of it: the person may not know where."""
    path = folder / Path(name).expanduser()
    if not path.is_file():
        return None
    target = path.resolve()
    if Path(os.path.abspath(path)).is_relative_to(folder) and not target.is_relative_to(folder.resolve()):
        raise ValueError(f"it is a link to {one_line(str(target), 500)}, which is outside of this folder")
    return target


def _read(path: Path) -> str:
    """The beginning of a file."""
    with path.open("rb") as file:
        data = file.read(4 * TEXT_LIMIT)
    if b"\0" in data[:1024]:
        raise ValueError("it is not a text")
    return data.decode("utf-8", "replace")
