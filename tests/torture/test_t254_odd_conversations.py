"""T254: one damaged file among the stored conversations does not hide the others."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelRequest, UserPromptPart

from dragoman.agent import transcript
from dragoman.agent.transcript import Transcript, transcripts

pytestmark = pytest.mark.requirement("AGT-5")
HEAD = b'{"version":1,"folder":"/x","model":"m"}\n'


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(Path.mkdir, id="folder"),
        pytest.param(os.mkfifo, id="pipe"),
        pytest.param(lambda path: path.symlink_to("/nothing/there"), id="link to nothing"),
        pytest.param(lambda path: path.symlink_to(path), id="link to itself"),
        pytest.param(lambda path: path.write_bytes(b"[" * 100_000), id="deep first line"),
    ],
)
def test_t254_a_file_that_is_not_a_conversation_is_left_out(home: Path, make: Callable[[Path], object]):
    good = Transcript.begin(Path("/x"), "m")
    make(good.path.with_name("20200101-000000-abcdef.jsonl"))
    assert [info.id for info in transcripts()] == [good.id]


def test_t254_a_conversation_is_resumed_without_its_damaged_line(home: Path):
    begun = Transcript.begin(Path("/x"), "m")
    said = ModelRequest([UserPromptPart("hello")])
    with begun.path.open("ab") as file:
        file.write(b'{"message":' * 100_000 + b"\n")
    begun.add(said)
    assert begun.history() == [said]


def test_t254_a_file_that_cannot_be_read_does_not_hide_the_others(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    good, other = Transcript.begin(Path("/x"), "m"), Transcript.begin(Path("/x"), "m")
    read = transcript._lines

    def refuse(path: Path) -> Iterator[dict[str, Any]]:
        if path == other.path:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path)

    monkeypatch.setattr(transcript, "_lines", refuse)
    assert [info.id for info in transcripts()] == [good.id]


def test_t254_two_agents_have_two_files_although_the_first_could_not_be_written(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    begun = Transcript.begin(Path("/x"), "m")

    def refuse(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(transcript, "_append", refuse)
        works = [begun.begin_subagent("helper", Path("/x"), "m") for _ in range(2)]
    said = [ModelRequest([UserPromptPart(text)]) for text in ("first", "second")]
    for work, message in zip(works, said):
        work.add(message)
    assert [work.history() for work in works] == [[message] for message in said]
