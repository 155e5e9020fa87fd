"""T535: the file of a running conversation is replaced by something that cannot be written. The
conversation continues, the problem is reported, and everything is written once there is a file again."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from dragoman.agent.transcript import Transcript

pytestmark = pytest.mark.requirement("AGT-5")
REPLACED: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "a full device": lambda path: path.symlink_to("/dev/full"),
}


@pytest.mark.parametrize("replace", REPLACED.values(), ids=REPLACED.keys())
def test_t535_the_conversation_continues_and_is_written_later(home: Path, replace: Callable[[Path], object]):
    transcript = Transcript.begin(home, "scripted")
    said: list[ModelMessage] = [ModelRequest([UserPromptPart(text)]) for text in ("one", "two", "three")]
    transcript.add(said[0])
    transcript.path.unlink()
    replace(transcript.path)
    transcript.add(said[1])
    assert transcript.problem is not None
    assert transcript.problem.startswith(f"{transcript.path} cannot be written: ")
    transcript.path.rmdir() if transcript.path.is_dir() else transcript.path.unlink()
    transcript.restart(said)
    assert transcript.problem is None
    assert [message.parts[0].content for message in Transcript.existing(transcript.id).history()] == [
        "one",
        "two",
        "three",
    ]
