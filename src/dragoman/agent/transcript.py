"""Transcripts: conversations as JSON lines in the person's state folder, which can be resumed.

Each message is written at once, so that a crash loses nothing. A file whose last line is cut off can still be
resumed. If the file cannot be written (the disk is full), the conversation continues, and everything is
written again as soon as possible. Files are private to the person.
"""

from __future__ import annotations

import itertools
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

import msgspec
from msgspec import Struct

from dragoman import paths
from dragoman.cleaning import one_line
from dragoman.errors import NotFound
from dragoman.private_files import CLOSE_ON_EXEC, NO_WAIT

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage

VERSION: Final = 1
_ID: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")


class TranscriptInfo(Struct, frozen=True, kw_only=True):
    """A stored conversation."""

    id: str
    folder: str
    """The working directory in which the conversation began."""
    model: str
    first_prompt: str
    changed_at: float


class Record(NamedTuple):
    """The transcript of a conversation, and its earlier messages."""

    transcript: Transcript | None = None
    history: Sequence[ModelMessage] = ()


class Transcript:
    """Appends to one conversation's file."""

    def __init__(self, path: Path, head: Mapping[str, Any] | None = None) -> None:
        """`head`: the first line of a new file."""
        self._path = path
        self._subagent_files: set[Path] = set()
        """The transcripts of subagents."""
        self._unwritten = [] if head is None else [head]
        self._is_at_start = head is not None
        """Whether the next write begins a line: the last write may have been cut off."""
        self.problem: str | None = None
        """A description of why the file is incomplete; None if it is complete."""

    @property
    def id(self) -> str:
        return self._path.stem

    @property
    def path(self) -> Path:
        return self._path

    @staticmethod
    def begin(folder: Path, model: str) -> Transcript:
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        return _new_transcript(_folder() / f"{name}.jsonl", folder, model)

    def begin_subagent(self, agent: str, folder: Path, model: str) -> Transcript:
        """A transcript for a subagent of this conversation, in the same folder. Its name begins with the id
        of the conversation. It is not listed as a conversation."""
        names = (f"{self.id}.{agent}-{number}.jsonl" for number in itertools.count(1))
        places = map(self._path.with_name, names)
        free = next(path for path in places if path not in self._subagent_files and not path.exists())
        self._subagent_files.add(free)  # the file may not exist yet: the disk may be full
        return _new_transcript(free, folder, model)

    @staticmethod
    def existing(name: str) -> Transcript:
        """The transcript of this id. Raises `NotFound`."""
        path = _folder() / f"{name}.jsonl"
        if not _ID.fullmatch(name) or not path.is_file():
            raise NotFound(
                f"there is no conversation {one_line(name, 80)!r}",
                hint="/resume in a conversation lists them; --continue continues the last one here.",
            )
        return Transcript(path)

    def history(self) -> list[ModelMessage]:
        """The messages so far, in a form that can be continued."""
        return with_all_results(read_messages(self._path))

    def add(self, message: ModelMessage) -> None:
        self.write({"message": _dump([message])[0]})

    def restart(self, history: Sequence[ModelMessage]) -> None:
        """Writes the whole conversation again, after it was replaced by a summary or after a failed write.
        When the conversation is resumed, earlier lines are ignored."""
        self.write({"restart": _dump(history)})

    def write(self, *lines: Mapping[str, Any]) -> None:
        """Appends lines, after the first line if that is not written yet."""
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in (*self._unwritten, *lines))
        try:
            _append(self._path, data if self._is_at_start else b"\n" + data)
        except OSError as error:
            self._is_at_start = False
            self.problem = f"{one_line(str(self._path))} cannot be written: {error.strerror or error}"
        else:
            self._is_at_start, self._unwritten, self.problem = True, [], None


def _new_transcript(path: Path, folder: Path, model: str) -> Transcript:
    transcript = Transcript(path, {"version": VERSION, "folder": _text_of(folder), "model": model})
    transcript.write()
    return transcript


def _text_of(folder: Path) -> str:
    """The path as JSON can contain it: names of folders may be bytes that are not UTF-8."""
    return os.fsencode(folder).decode("utf-8", "backslashreplace")


def _append(path: Path, data: bytes) -> None:
    paths.make_private(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | NO_WAIT | CLOSE_ON_EXEC, 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def transcripts(folder: Path | None = None) -> list[TranscriptInfo]:
    """The stored conversations of a folder, or all; the newest first."""
    found = [info for path in _folder().glob("*.jsonl") if (info := _readable_info(path)) is not None]
    wanted = [info for info in found if folder is None or info.folder == _text_of(folder)]
    return sorted(wanted, key=lambda info: info.changed_at, reverse=True)


def read_messages(path: Path) -> list[ModelMessage]:
    """The messages, without lines that cannot be read."""
    from pydantic import ValidationError
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    history: list[ModelMessage] = []
    for line in _lines(path):
        try:
            if "restart" in line:
                history = ModelMessagesTypeAdapter.validate_python(line["restart"])
            elif "message" in line:
                history += ModelMessagesTypeAdapter.validate_python([line["message"]])
        except ValidationError:
            continue
    return history


def with_all_results(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The conversation with exactly one result for every tool call, and no result without a call. Providers
    refuse any other conversation.

    Results may be missing or repeated because the program was killed, a line is damaged, or two processes
    have continued the same file.
    """
    from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

    from dragoman.agent.conversion import interrupted

    whole: list[ModelMessage] = []
    waiting: dict[str, ToolCallPart] = {}
    for message in history:
        if isinstance(message, ModelRequest):
            results = {
                part.tool_call_id: part
                for part in message.parts
                if isinstance(part, ToolReturnPart) and part.tool_call_id in waiting
            }
            missing = [interrupted(call) for name, call in waiting.items() if name not in results]
            kept = [
                part
                for part in message.parts
                if not isinstance(part, ToolReturnPart) or results.get(part.tool_call_id) is part
            ]
            waiting = {}
            if not (missing or kept):
                continue
            if missing or len(kept) < len(message.parts):
                message = replace(message, parts=[*missing, *kept])
        elif waiting:
            whole.append(ModelRequest([interrupted(call) for call in waiting.values()]))
        if isinstance(message, ModelResponse):
            calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
            waiting = {call.tool_call_id: call for call in calls}
        whole.append(message)
    if waiting:
        whole.append(ModelRequest([interrupted(call) for call in waiting.values()]))
    return whole


def _dump(history: Sequence[ModelMessage]) -> list[Any]:
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    return ModelMessagesTypeAdapter.dump_python(list(history), mode="json")


def _folder() -> Path:
    return paths.state_dir() / "conversations"


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for line in file:
            try:
                found = msgspec.json.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # cut off or damaged
                continue
            if isinstance(found, dict):
                yield cast("dict[str, Any]", found)


def _readable_info(path: Path) -> TranscriptInfo | None:
    """Information about a transcript; None for other files, and for one that cannot be read."""
    try:
        return _info(path) if _ID.fullmatch(path.stem) and path.is_file() else None
    except OSError:
        return None


def _info(path: Path) -> TranscriptInfo | None:
    lines = _lines(path)
    head = next(lines, None)
    if head is None:
        return None
    return TranscriptInfo(
        id=path.stem,
        folder=str(head.get("folder", "")),
        model=str(head.get("model", "")),
        first_prompt=_prompt_in(next(lines, None) or {}),
        changed_at=path.stat().st_mtime,
    )


def _prompt_in(line: Mapping[str, Any]) -> str:
    try:
        message: Any = line["message"] if "message" in line else line["restart"][0]
        content = message["parts"][-1]["content"]  # the parts before it may be texts of hooks
    except (LookupError, TypeError):  # the line is damaged or incomplete
        return ""
    return one_line(content, 200) if isinstance(content, str) else ""
