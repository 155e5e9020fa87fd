"""T422: the operating system refuses what the terminal application needs: it reports the error and
continues."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from dragoman.agent import transcript
from dragoman.agent.transcript import Transcript
from dragoman.testing.model import Says
from dragoman.tui import commands
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("AGT-1")


async def test_t422_an_unreadable_conversation_is_named_and_a_new_one_is_started(
    home: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    stored = Transcript.begin(Path.cwd(), "m")
    stored.add(ModelRequest([UserPromptPart("hello")]))

    def refuse(path: Path) -> Iterator[dict[str, Any]]:
        raise PermissionError(13, "Permission denied", str(path))

    async with desk.opened([Says("Here I am.")]) as seat:
        with monkeypatch.context() as unreadable:
            unreadable.setattr(transcript, "_lines", refuse)
            seat.app.control.resume(stored.id)
            await seat.until(lambda: "Permission denied" in seat.text)
        await seat.send("/clear")
        await seat.until(lambda: seat.app.control.session is not None)
        await seat.say("Are you there?")
        assert "Here I am." in seat.text


async def test_t422_a_failed_command_is_shown_as_an_error(
    home: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
):
    async def refuse(app: object, line: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(commands, "run", refuse)
    async with desk.opened() as seat:
        await seat.send("/mcp disable desk")
        await seat.until(lambda: "No space left on device" in seat.text)
