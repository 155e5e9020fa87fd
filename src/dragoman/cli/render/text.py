"""Values as text for people. Text from servers is escaped here."""

from __future__ import annotations

import base64
import mimetypes
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, cast

import click
import msgspec

from dragoman.atomic_write import resolved, write_output
from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import last_lines, one_line, visible
from dragoman.cli.render import json
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.servers import OUTPUT_CHARACTERS, counted
from dragoman.content.blocks import AudioBlock, Block, ImageBlock, ResourceBlock, TextBlock
from dragoman.errors import ConnectError, ConnectionLost, DragomanError
from dragoman.names import shell_quoted
from dragoman.servers.status import ServerStatus

_MARKS = {"connected": ("✓", "green"), "failed": ("✗", "red"), "pending": ("?", "yellow")}


def show_error(error: DragomanError) -> None:
    echo_wrapped(visible(str(error)), label="error: ", colour="red", err=True)
    if isinstance(error, ConnectError | ConnectionLost):
        lines = last_lines(error.stderr_tail)
        if lines:
            click.echo(click.style("  last output:", dim=True), err=True)
        for line in lines:
            click.echo(click.style(f"    {visible(line, OUTPUT_CHARACTERS)}", dim=True), err=True)
    if error.hint:
        echo_wrapped(visible(error.hint), label="  hint: ", colour="cyan", err=True)


def report_error(error: DragomanError, *, as_json: bool) -> None:
    if as_json:
        json.echo({"error": json.error(error)})
    else:
        show_error(error)


def show_server(view: ServerStatus, *, err: bool = False) -> None:
    mark, colour = _MARKS.get(view.status, ("·", "white"))
    about = f"{counted(view.tool_count, 'tool')}, {view.protocol_version}"
    if view.status != "connected":
        about = f"{view.status}: {one_line(view.reason, 300)}" if view.reason else view.status
    click.echo(
        f"{click.style(mark, fg=colour)} {click.style(one_line(view.name), bold=True)}  {about}", err=err
    )
    if view.status == "pending":
        click.echo(f"    dragoman mcp approve {shell_quoted(view.name)}", err=err)
    for problem in view.problems:
        echo_wrapped(one_line(problem, 300), label="    ! ", colour="yellow", err=err)


def show_outcome(outcome: CallOutcome, written: Collection[int] = ()) -> None:
    """Prints a result on stdout, an error on stderr. `written`: blocks that were written to files."""
    for number, block in enumerate(outcome.content):
        if number in written:
            continue
        if isinstance(block, TextBlock):
            text = visible(block.text)
        elif isinstance(block, ImageBlock | AudioBlock):
            kind = "image" if isinstance(block, ImageBlock) else "audio"
            text = f"[{kind}: {one_line(block.mime_type, 60)}, {len(block.data) * 3 // 4} bytes]"
            text += "" if outcome.is_error else "; -o FILE writes it to a file"
        else:
            text = visible(block.as_text())
        click.echo(text, err=outcome.is_error)
    is_shown = _show_structured(outcome)
    if not is_shown and not any(_has_content(block) for block in outcome.content):
        click.echo("(the result is empty)", err=True)
    for problem in outcome.problems:
        echo_wrapped(one_line(problem, 500), label="! ", colour="yellow", err=True)


def _has_content(block: Block) -> bool:
    return not isinstance(block, TextBlock) or bool(block.text.strip())


def _show_structured(outcome: CallOutcome) -> bool:
    """Prints the structured content, unless a text is the same. Returns whether there was any."""
    if not outcome.has_structured:
        return False
    structured = outcome.structured
    if any(isinstance(block, TextBlock) and _is_same(block.text, structured) for block in outcome.content):
        return True
    click.echo(visible(msgspec.json.format(msgspec.json.encode(structured)).decode()), err=outcome.is_error)
    return True


def _is_same(text: str, structured: Any) -> bool:
    """Whether the text is the structured content as JSON, or the only member of it, as in `{"result": …}`."""
    if isinstance(structured, dict) and list(cast("dict[str, Any]", structured).values()) == [text]:
        return True
    try:
        return msgspec.json.decode(text.encode("utf-8", "replace")) == structured
    except (msgspec.DecodeError, RecursionError):
        return False


def write_files(outcome: CallOutcome, output: Path) -> frozenset[int]:
    """Writes blocks that are not text to a file or folder; without such blocks, the text. Returns the numbers
    of the blocks.

    If there are several blocks, the second is written to `name-2.png`, and so on. The text of an error is not
    written. Only the file that the person named is replaced; under every other name a new file is created,
    with the next free number.
    """
    found = [(number, *part) for number, block in enumerate(outcome.content) if (part := _bytes_of(block))]
    if not found and not outcome.is_error:
        texts = [number for number, block in enumerate(outcome.content) if isinstance(block, TextBlock)]
        _write(output, "result", ".txt", 1, outcome.text.encode("utf-8", "replace"))
        return frozenset(texts)
    number = 0
    for _, data, name, ending in found:
        number = _write(output, name, ending, number + 1, data)
    return frozenset(number for number, *_ in found)


def _bytes_of(block: Block) -> tuple[bytes, str, str] | None:
    """The bytes of a block that is not text, with a name and a file extension for them."""
    if isinstance(block, ImageBlock | AudioBlock):
        kind = "image" if isinstance(block, ImageBlock) else "audio"
        data, mime = block.data, block.mime_type
    elif isinstance(block, ResourceBlock) and block.resource.blob is not None:
        kind, data, mime = "file", block.resource.blob, block.resource.mime_type or ""
    else:
        return None
    try:
        return base64.b64decode(data), kind, mimetypes.guess_extension(mime) or ".bin"
    except ValueError:
        return None


def _place(output: Path, name: str, ending: str, count: int) -> Path:
    number = "" if count == 1 else f"-{count}"
    if output.is_dir():
        return output / f"{name}{number}{ending}"
    return output.with_name(f"{output.stem}{number}{output.suffix}")


def write_named(path: Path, data: bytes) -> None:
    """Writes to the file that the person has named. An existing file is replaced atomically. Raises
    `OSError`, also if its folder does not exist."""
    is_device = path.absolute().parts[1:2] in (("dev",), ("proc",))  # also a redirected /dev/stdout
    if is_device or (path.exists() and not path.is_file()):
        path.write_bytes(data)
        return
    real = resolved(path)
    os.stat(os.path.join(real.parent, ""))
    write_output(real, data)


def _write_new(path: Path, data: bytes) -> None:
    """Creates a new file; does not replace an existing one, and does not follow a link in the folder."""
    with path.open("xb") as file:
        try:
            file.write(data)
            file.flush()
        except OSError:
            path.unlink()
            raise


def _write(output: Path, name: str, ending: str, number: int, data: bytes) -> int:
    """Writes one part, under this number or the next free one; returns the number."""
    is_named = number == 1 and not output.is_dir()
    while True:
        path = _place(output, name, ending, number)
        try:
            if is_named:
                write_named(path, data)
            else:
                _write_new(path, data)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise click.FileError(str(path), error.strerror) from None
        else:
            click.echo(f"{len(data)} bytes written to {one_line(str(path))}", err=True)
            return number
