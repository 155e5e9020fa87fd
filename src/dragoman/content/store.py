"""Finds saved results by their handles, and answers questions about them.

Only files in Dragoman's own folder are read, by names made here; a path is not a handle. A regular
expression from a model could take long, so it runs in a child process with limits, where it cannot block a
thread or the event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.content.querying import SECONDS, BadQuestion, asked, is_expression
from dragoman.content.saving import NotSaved, Saver

ANSWER_LIMIT: Final = 20_000
"""The maximum length of one answer, in characters."""
AT_ONCE: Final = 2
READABLE: Final = (".txt", ".json", ".csv", ".md")
_ROOT: Final = str(Path(__file__).parents[2])
_PROGRAM: Final = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from dragoman.content.querying import main; main()"
)


class ResultStore:
    def __init__(self, saver: Saver | None = None, *, seconds: float = SECONDS) -> None:
        self._saver = saver or Saver()
        self._seconds = seconds
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def ask(self, handle: str, question: Mapping[str, Any], limit: int = ANSWER_LIMIT) -> str:
        """Answers a question about a saved result; raises `BadQuestion` or `NotSaved` if there is no
        answer."""
        file, name = await asyncio.to_thread(self._saver.open_saved, handle)
        try:
            if not name.endswith(READABLE):
                raise BadQuestion("it is no text")
            if is_expression(question.get("grep", "")):
                async with self._turns:
                    return await self._in_child(file, question, limit)
            return await asyncio.to_thread(_in_thread, file, dict(question), limit)
        finally:
            os.close(file)

    async def _in_child(self, file: int, question: Mapping[str, Any], limit: int) -> str:
        os.lseek(file, 0, os.SEEK_SET)
        request = msgspec.json.encode(question).decode()
        child = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", "-c", _PROGRAM, _ROOT, request, str(limit)),
            stdin=file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env={},
        )
        try:
            async with asyncio.timeout(self._seconds):
                output, _ = await child.communicate()
        except TimeoutError:
            raise BadQuestion(f"it took longer than {self._seconds:g} s; ask for something simpler") from None
        finally:
            if child.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    child.kill()
                await child.wait()
        return _answer(output)


def _in_thread(file: int, question: dict[str, Any], limit: int) -> str:
    with os.fdopen(os.dup(file), "rb") as stream:
        return asked(stream, question, limit)


def _answer(output: bytes) -> str:
    try:
        answer = msgspec.json.decode(output, type=dict[str, str])
    except msgspec.DecodeError:
        # It ended itself or was killed, because it exceeded its time or memory.
        raise BadQuestion("it takes too long; ask for something simpler") from None
    if "error" in answer:
        raise BadQuestion(answer["error"])
    return answer["text"]


__all__ = ["ANSWER_LIMIT", "BadQuestion", "NotSaved", "ResultStore"]
