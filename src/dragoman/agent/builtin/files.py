"""The tools Read, Write and Edit."""

from __future__ import annotations

import base64
import codecs
import difflib
import itertools
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

from dragoman import atomic_write
from dragoman.agent.builtin.workspace import PATH, BuiltinToolError, Workspace, version_of
from dragoman.calls.requests import object_schema
from dragoman.catalog.tools import BuiltinTool
from dragoman.content.blocks import Block, ImageBlock
from dragoman.content.images import kind_of
from dragoman.own_threads import in_own_thread

LINE_LIMIT: Final = 2000
LINE_LENGTH_LIMIT: Final = 2000
READ_LIMIT_BYTES: Final = 256 * 1024
"""The largest text that one call returns."""
PIECE_BYTES: Final = 64 * 1024
"""The most bytes of a long line that are read at once."""
EDIT_LIMIT_BYTES: Final = 16 * 1024 * 1024
IMAGE_LIMIT_BYTES: Final = 32 * 1024 * 1024
DIFF_LINES: Final = 60
COMPARED_LINES: Final = 20_000
"""The most lines that are compared line by line: the time grows with the square of their number."""
PROPOSED_LINES: Final = 5000
"""The most lines of the difference that a person is shown before a file is changed."""

_decoder: Final = codecs.getincrementaldecoder("utf-8")
_writing = threading.Lock()
"""Held from the check of a file until it is replaced, because several agents may change files in parallel."""

_PATH_SCHEMA: Final = {
    "type": "string",
    "description": "The file; absolute, or relative to the working directory",
}


def file_tools(workspace: Workspace) -> list[BuiltinTool]:
    return [_read_tool(workspace), _write_tool(workspace), _edit_tool(workspace)]


def _read_tool(workspace: Workspace) -> BuiltinTool:
    return BuiltinTool(
        "Read",
        _in_thread(partial(_read, workspace)),
        description=(
            f"Reads a text file, or an image. Returns up to {LINE_LIMIT} lines with their numbers, from "
            "offset on, or as many as limit says. Saved results of tools can be read as well."
        ),
        input_schema=object_schema(
            {
                PATH: _PATH_SCHEMA,
                "offset": {"type": "integer", "minimum": 1, "description": "The first line; 1 if left out"},
                "limit": {"type": "integer", "minimum": 1, "maximum": LINE_LIMIT},
            },
            PATH,
        ),
        annotations={"readOnlyHint": True, "openWorldHint": False},
        needs_no_rule=workspace.is_path_inside,
        complete=partial(workspace.with_full_path, "Read"),
        by_other_names=workspace.by_other_names,
    )


def _write_tool(workspace: Workspace) -> BuiltinTool:
    return BuiltinTool(
        "Write",
        _in_thread(partial(_write, workspace)),
        description=(
            "Writes a whole file, and creates folders that are missing. A file that exists must have been "
            "read before. To change a part of a file, use Edit."
        ),
        input_schema=object_schema({PATH: _PATH_SCHEMA, "content": {"type": "string"}}, PATH, "content"),
        annotations={"destructiveHint": True, "openWorldHint": False},
        complete=partial(workspace.with_full_path, "Write"),
        by_other_names=workspace.by_other_names,
    )


def _edit_tool(workspace: Workspace) -> BuiltinTool:
    return BuiltinTool(
        "Edit",
        _in_thread(partial(_edit, workspace)),
        description=(
            "Replaces a text in a file that was read before. old_string must be exactly what is in the file, "
            "without line numbers, and must occur once, unless replace_all is true."
        ),
        input_schema=object_schema(
            {
                PATH: _PATH_SCHEMA,
                "old_string": {"type": "string", "minLength": 1},
                "new_string": {"type": "string"},
                "replace_all": {"type": "boolean", "description": "false if left out"},
            },
            PATH,
            "old_string",
            "new_string",
        ),
        annotations={"destructiveHint": True, "openWorldHint": False},
        complete=partial(workspace.with_full_path, "Edit"),
        by_other_names=workspace.by_other_names,
    )


def _read(workspace: Workspace, arguments: Mapping[str, Any]) -> str | tuple[Block, ...]:
    path = workspace.path_in(arguments)
    size = _regular_size(path)
    with path.open("rb") as file:
        head = file.read(64)
        file.seek(0)
        if (kind := kind_of(head)) is not None:
            if size > IMAGE_LIMIT_BYTES:
                raise BuiltinToolError(f"the image has {size} bytes, more than {IMAGE_LIMIT_BYTES}")
            return (ImageBlock(base64.b64encode(file.read()).decode(), f"image/{kind.lower()}"),)
        if b"\0" in head:
            raise BuiltinToolError(f"{path} is not a text file ({size} bytes). Use a command to inspect it.")
        offset = int(arguments.get("offset", 1))
        text = _numbered(file, offset, int(arguments.get("limit", LINE_LIMIT)))
    workspace.note_read(path)
    return text or _no_lines(path, size, offset)


def _numbered(file: BinaryIO, offset: int, limit: int) -> str:
    """As many lines as fit, with their numbers, and a note about how to read the following lines."""
    shown: list[str] = []
    room = READ_LIMIT_BYTES
    for number, (text, length) in enumerate(_lines(file), 1):
        if number < offset:
            continue
        if length > LINE_LENGTH_LIMIT:
            text = f"{text[:LINE_LENGTH_LIMIT]}… ({length - LINE_LENGTH_LIMIT} more characters)"
        room -= len(text) + 8
        if len(shown) == limit or room < 0:
            shown.append(f"(The file has more lines: continue with offset={number}.)")
            break
        shown.append(f"{number:6}\t{text}")
    return "\n".join(shown)


def _lines(file: BinaryIO) -> Iterator[tuple[str, int]]:
    """Yields the beginning and the length of each line: a line may be as long as the file."""
    while piece := file.readline(PIECE_BYTES):
        decoder = _decoder("replace")
        text = decoder.decode(piece.rstrip(b"\r\n"))
        length = len(text)
        while not piece.endswith(b"\n") and (piece := file.readline(PIECE_BYTES)):
            length += len(decoder.decode(piece.rstrip(b"\r\n")))
        end = decoder.decode(b"", final=True)
        yield text + end, length + len(end)


def _no_lines(path: Path, size: int, offset: int) -> str:
    return f"{path} is empty." if size == 0 else f"{path} has fewer than {offset} lines."


def _write(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    path, content = workspace.path_in(arguments), str(arguments["content"])
    with _writing:
        is_new = not path.exists()
        if not is_new:
            _regular_size(path)
            workspace.check_read(path)
        _replace(path, content)
        workspace.note_read(path)
    lines = content.count("\n") + (not content.endswith("\n") and content != "")
    return f"{'Created' if is_new else 'Replaced'} {path} ({lines} lines)."


def _edit(workspace: Workspace, arguments: Mapping[str, Any]) -> str:
    path = workspace.path_in(arguments)
    if _regular_size(path) > EDIT_LIMIT_BYTES:
        raise BuiltinToolError(
            f"{path} is larger than {EDIT_LIMIT_BYTES >> 20} MB, the limit of Edit. Use a command."
        )
    with _writing:
        workspace.check_read(path)
        before = path.read_bytes().decode("utf-8", "surrogateescape")
        after = _edited(before, arguments)
        _replace(path, after)
        workspace.note_read(path)
    return f"Changed {path}:\n{_diff(before, after)}"


def _replace(path: Path, text: str) -> None:
    """Replaces the file atomically, so that the old content is not lost if the disk is full."""
    before = version_of(path)
    try:
        atomic_write.write_output(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        after = version_of(path)
        state = (
            "is not complete" if before != after else "was not created" if after is None else "is unchanged"
        )
        raise BuiltinToolError(f"{path} cannot be written: {error.strerror or error}. It {state}.") from None


def _edited(before: str, arguments: Mapping[str, Any]) -> str:
    old, new = str(arguments["old_string"]), str(arguments["new_string"])
    if "\r\n" in before and "\r\n" not in old:
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    if old == new:
        raise BuiltinToolError("old_string and new_string are the same")
    count = before.count(old)
    if count == 0:
        raise BuiltinToolError("old_string is not in the file. Read the file again, and copy it exactly.")
    if count > 1 and arguments.get("replace_all") is not True:
        raise BuiltinToolError(
            f"old_string occurs {count} times in the file. Include more of the text around it, or set "
            "replace_all."
        )
    return before.replace(old, new)


def _diff(before: str, after: str, limit: int = DIFF_LINES) -> str:
    if _ends_lines_with_crlf(before) and _ends_lines_with_crlf(after):
        before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    lines = _changed_lines(_split(before), _split(after))
    more = [f"… {len(lines) - limit} more lines"] if len(lines) > limit else []
    return "\n".join([*lines[:limit], *more])


def _split(text: str) -> list[str]:
    """Splits the text at line feeds only, as programs do. Other characters that end a line stay in the text,
    so that the difference shows them."""
    return text.removesuffix("\n").split("\n") if text else []


def _ends_lines_with_crlf(text: str) -> bool:
    return text.count("\r\n") == text.count("\n") == text.count("\r")


def _changed_lines(before: list[str], after: list[str]) -> list[str]:
    """The difference, line by line; if there are very many lines, all old lines and then all new lines."""
    if len(before) + len(after) <= COMPARED_LINES:
        return list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    first = _count_equal(before, after)
    last = _count_equal(reversed(before[first:]), reversed(after[first:]))
    old, new = before[first : len(before) - last], after[first : len(after) - last]
    if len(old) + len(new) <= COMPARED_LINES:
        found = _changed_lines(old, new)
    else:
        found = [*(f"-{line}" for line in old), *(f"+{line}" for line in new)]
    return [f"(The line numbers start at line {first + 1} of the file.)", *found]


def _count_equal(some: Iterable[str], others: Iterable[str]) -> int:
    """The number of equal elements at the beginning."""
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(some, others)))


def proposed_change(tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The complete difference that a call of Write or Edit would make, for the permission question; None for
    other tools, and for a call that will fail."""
    try:
        path = Path(str(arguments["file_path"]))
        if path.exists() and _regular_size(path) > EDIT_LIMIT_BYTES:
            return None
        before = path.read_bytes().decode("utf-8", "surrogateescape") if path.exists() else ""
        if tool == "Write":
            after = str(arguments["content"])
        elif tool == "Edit":
            after = _edited(before, arguments)
        else:
            return None
    except (OSError, LookupError, ValueError, BuiltinToolError):
        return None
    return _diff(before, after, limit=PROPOSED_LINES) or "(no difference)"


def _regular_size(path: Path) -> int:
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise BuiltinToolError(f"{path} is a folder. Use Glob or a command.")
    if not stat.S_ISREG(status.st_mode):
        raise BuiltinToolError(f"{path} is not a regular file")
    return status.st_size


def _in_thread(
    work: Callable[[Mapping[str, Any]], str | tuple[Block, ...]],
) -> Callable[[Mapping[str, Any]], Any]:
    async def run(arguments: Mapping[str, Any]) -> str | tuple[Block, ...]:
        try:
            return await in_own_thread(partial(work, arguments))
        except OSError as error:
            raise BuiltinToolError(
                f"{error.filename or 'the file'}: {os.strerror(error.errno or 0)}"
            ) from None

    return run
