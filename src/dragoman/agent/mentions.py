"""Mentions in a message: `@path` appends a file, `@server:uri` a resource, marked as data.

A path with spaces is quoted, `@"my notes.txt"`. Only the name of a known server starts the mention of a
resource: `me@example.com` and `@types/node` are not mentions. A URI ends at the next space, without the
punctuation of the sentence; a URI with spaces is quoted, `@server:"file:///my notes"` or, for a server with
spaces in its name, `@"my server:file:///my notes"`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from dragoman.agent.builtin.files import file_tools
from dragoman.agent.builtin.workspace import PATH, Workspace
from dragoman.catalog.tools import BuiltinTool
from dragoman.cleaning import for_model, one_line
from dragoman.errors import DragomanError
from dragoman.host import Host
from dragoman.own_threads import in_own_thread
from dragoman.wire.uris import URI_LIMIT, is_usable

_AT = re.compile(r"""(?<![\w@.%+/-])@""")
_REST = re.compile(rf"\S{{1,{URI_LIMIT + 1}}}")
_CLOSERS: Final = {")": "(", "]": "[", "}": "{"}


class Mention(NamedTuple):
    server: str
    uri: str
    start: int
    """The positions in the text at which the mention begins and ends."""
    end: int

    @property
    def name(self) -> str:
        return f"{self.server}:{self.uri}"


def find_mentions(text: str, servers: Collection[str]) -> list[Mention]:
    """All mentions of resources, in the order of the text. Pure."""
    # The longest names first: with servers `a` and `a:b`, `@a:b:c` names the second.
    names = sorted(servers, key=len, reverse=True)
    found: list[Mention] = []
    for at in _AT.finditer(text):
        start = at.end()
        if found and start <= found[-1].end:
            continue
        mention = _quoted(text, start, names) or _plain(text, start, names)
        if mention is not None and is_usable(mention.uri):
            found.append(mention)
    return found


def _quoted(text: str, start: int, names: Sequence[str]) -> Mention | None:
    if not text.startswith('"', start):
        return None
    end = text.find('"', start + 1)
    server = _server_at(text, start + 1, names)
    if end < 0 or server is None:
        return None
    return Mention(server, text[start + 2 + len(server) : end], start - 1, end + 1)


def _plain(text: str, start: int, names: Sequence[str]) -> Mention | None:
    server = _server_at(text, start, names)
    if server is None:
        return None
    begin = start + len(server) + 1
    if text.startswith('"', begin):
        end = text.find('"', begin + 1)
        return None if end < 0 else Mention(server, text[begin + 1 : end], start - 1, end + 1)
    rest = _REST.match(text, begin)
    if rest is None or len(rest.group()) > URI_LIMIT:
        return None
    uri = _without_punctuation(rest.group())
    return Mention(server, uri, start - 1, begin + len(uri)) if uri else None


def _server_at(text: str, place: int, names: Iterable[str]) -> str | None:
    return next((name for name in names if name and text.startswith(f"{name}:", place)), None)


def _without_punctuation(uri: str) -> str:
    """The URI without punctuation at its end; a closing bracket is kept if it was opened inside the URI."""
    while uri:
        last = uri[-1]
        opener = _CLOSERS.get(last)
        if (opener is not None and uri.count(last) > uri.count(opener)) or last in ".,;:!?'\"…»”’":
            uri = uri[:-1]
        else:
            break
    return uri


TEXT_LIMIT: Final = 60_000
"""The most characters of one file or resource; the model reads the rest with its tools."""
MENTION_LIMIT: Final = 10
_FILE: Final = re.compile(r'(?:^|(?<=\s))@(?:"([^"\n]+)"|(\S+))')
_END_OF_DATA: Final = re.compile(r"</(?=\s*(?:file|resource)\b)", re.IGNORECASE)


class FileMention(NamedTuple):
    name: str
    start: int


def mentioned(text: str, servers: Collection[str]) -> list[Mention | FileMention]:
    """The mentioned files and resources, each once, in the order of the text. Pure."""
    resources = find_mentions(text, servers)
    files = [
        FileMention(found[1] or found[2].rstrip(".,;:!?)"), found.start())
        for found in _FILE.finditer(text)
        if not any(each.start <= found.start() < each.end for each in resources)
    ]
    by_name: dict[str, Mention | FileMention] = {}
    for each in sorted((*resources, *files), key=lambda each: each.start):
        by_name.setdefault(each.name, each)
    return list(by_name.values())[:MENTION_LIMIT]


async def expanded(
    text: str, host: Host, folder: Path, extra_folders: Sequence[Path] = ()
) -> tuple[str, list[str]]:
    """The message with the mentioned files and resources, and the reasons for those that were not added."""
    read_tool = next(tool for tool in file_tools(Workspace(folder)) if tool.name == "Read")
    added: list[str] = []
    problems: list[str] = []
    for mention in mentioned(text, host.servers):
        try:
            if isinstance(mention, Mention):
                found = await host.resources.read(mention.server, mention.uri)
                added.append(_marked("resource", mention.name, found.text))
            elif path := await in_own_thread(partial(_file, folder, extra_folders, mention.name)):
                await _check_allowed(host, read_tool, path, _named(folder, mention.name))
                content = await in_own_thread(partial(_read, path))
                added.append(_marked("file", mention.name, content))
        except (DragomanError, OSError, RuntimeError, ValueError) as error:
            problems.append(f"@{one_line(mention.name, 100)} was not added: {error}")
    return "\n\n".join([text, *added]), problems


async def _check_allowed(host: Host, read_tool: BuiltinTool, path: Path, named: str) -> None:
    """Raises `ValueError` if a rule denies `Read` for the file, by its real path or by the path that the
    person has `named`. No question is asked."""
    arguments = {PATH: str(path)}
    if any(host.is_denied(read_tool, each) for each in (arguments, {PATH: named})):
        raise ValueError("a rule about Read denies it")
    decision = (await host.hooks.before_call(read_tool, arguments)).hook_decision
    if decision is not None and decision.behaviour == "deny":
        raise ValueError(f"the hook {one_line(decision.hook, 200)} denies it")


def _marked(kind: str, name: str, text: str) -> str:
    """The text between a start and an end mark. Text inside it that looks like the end mark is changed, so
    that data cannot end the mark early."""
    content = _END_OF_DATA.sub(r"<\/", for_model(text, TEXT_LIMIT))
    shown = one_line(name, 500).replace('"', "%22")
    return f'<{kind} name="{shown}">\n{content}\n</{kind}>'


def _named(folder: Path, name: str) -> str:
    """The path of the file as the person has named it, with links in it."""
    return os.path.abspath(folder / Path(name).expanduser())


def _file(folder: Path, extra_folders: Sequence[Path], name: str) -> Path | None:
    """The resolved path of the file; None if it does not exist. Raises `ValueError` for a link inside the
    person's folders that leads outside, because the person may not know its target."""
    path = folder / Path(name).expanduser()
    if not path.is_file():
        return None
    target = path.resolve()
    folders = {each.resolve() for each in (folder, *extra_folders)}
    # Compares resolved paths: a path may name the folder by a link to it, such as the home directory.
    is_in_folder = any(each.resolve() in folders for each in Path(os.path.abspath(path)).parents)
    if is_in_folder and not any(target.is_relative_to(each) for each in folders):
        raise ValueError(f"it is a link to {one_line(str(target), 500)}, which is outside your folders")
    return target


def _read(path: Path) -> str:
    """Reads the beginning of a file."""
    with path.open("rb") as file:
        data = file.read(4 * TEXT_LIMIT)
    if b"\0" in data[:1024]:
        raise ValueError("it is not a text file")
    return data.decode("utf-8", "replace")
