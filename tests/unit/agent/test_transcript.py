"""Transcripts: written as it is said, private, resumed after whatever happened."""

import stat
from pathlib import Path

import pytest
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman import paths
from dragoman.agent.conversion import INTERRUPTED
from dragoman.agent.transcript import Transcript, transcripts, with_all_results
from dragoman.errors import NotFound

pytestmark = pytest.mark.requirement("AGT-5")

HELLO = ModelRequest([UserPromptPart("hello")])
CALLS = ModelResponse([ToolCallPart("a", {"x": 1}, "1"), ToolCallPart("b", "{}", "2")])


def file_of(transcript: Transcript) -> Path:
    return paths.state_dir() / "conversations" / f"{transcript.id}.jsonl"


def test_a_transcript_is_read_back(home: Path):
    transcript = Transcript.begin(home, "scripted:m")
    picture = ToolReturnPart("a", [BinaryContent(b"\x89PNG", media_type="image/png")], "1")
    said = [HELLO, ModelResponse([ToolCallPart("a", {"x": 1}, "1")]), ModelRequest([picture])]
    for message in said:
        transcript.add(message)
    again = Transcript.existing(transcript.id)
    history = again.history()
    assert again.id == transcript.id
    assert [type(message) for message in history] == [type(message) for message in said]
    assert history[2].parts[0].content[0].data == b"\x89PNG"
    assert stat.S_IMODE(file_of(transcript).stat().st_mode) == 0o600


def test_a_truncated_file_is_resumed_up_to_its_last_complete_line(home: Path):
    transcript = Transcript.begin(home, "scripted:m")
    transcript.add(HELLO)
    with file_of(transcript).open("ab") as file:
        file.write(b'{"message": {"parts": [{"content": "half a li')
    assert len(Transcript.existing(transcript.id).history()) == 1


def test_lines_after_a_truncated_line_are_not_lost(home: Path):
    transcript = Transcript.begin(home, "scripted:m")
    transcript.add(HELLO)
    with file_of(transcript).open("ab") as file:
        file.write(b'{"message": {"parts": [{"content": "half a li')
    Transcript.existing(transcript.id).add(ModelResponse([TextPart("and on")]))
    assert [each.parts[0].content for each in Transcript.existing(transcript.id).history()] == [
        "hello",
        "and on",
    ]


def test_a_file_that_cannot_be_written_for_a_while_is_complete_afterwards(home: Path):
    folder = paths.state_dir() / "conversations"
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.touch()
    transcript = Transcript.begin(home, "scripted:m")
    assert transcript.problem == f"{file_of(transcript)} cannot be written: Not a directory"
    transcript.add(HELLO)
    assert transcript.problem is not None
    folder.unlink()
    transcript.restart([HELLO, ModelResponse([TextPart("hi")])])
    assert transcript.problem is None
    (info,) = transcripts(home)
    assert (info.id, info.first_prompt) == (transcript.id, "hello")
    assert len(Transcript.existing(transcript.id).history()) == 2


def test_transcripts_of_agents_are_stored_separately_and_not_listed(home: Path):
    transcript = Transcript.begin(home, "scripted:m")
    works = [transcript.begin_subagent("helper", home, "scripted:m") for _ in range(2)]
    assert [work.path.name for work in works] == [
        f"{transcript.id}.helper-1.jsonl",
        f"{transcript.id}.helper-2.jsonl",
    ]
    assert [info.id for info in transcripts()] == [transcript.id]
    with pytest.raises(NotFound):
        Transcript.existing(works[0].id)


def test_after_a_summary_only_the_summary_is_resumed(home: Path):
    transcript = Transcript.begin(home, "scripted:m")
    transcript.add(HELLO)
    transcript.restart([ModelRequest([UserPromptPart("they greeted")])])
    transcript.add(ModelResponse([TextPart("and on")]))
    first, second = Transcript.existing(transcript.id).history()
    assert (first.parts[0].content, second.parts[0].content) == ("they greeted", "and on")


@pytest.mark.parametrize("name", ["", "../secrets", "20260101-000000-abcdef", "x" * 300])
def test_only_a_conversation_can_be_resumed(name: str):
    with pytest.raises(NotFound):
        Transcript.existing(name)


def test_the_newest_of_a_folder_is_first(home: Path):
    import os

    one, two = Transcript.begin(home, "m:1"), Transcript.begin(home, "m:2")
    Transcript.begin(home / "elsewhere", "m:3")
    one.add(HELLO)
    os.utime(file_of(two), (1, 1))
    found = transcripts(home)
    assert [(info.id, info.model, info.first_prompt) for info in found] == [
        (one.id, "m:1", "hello"),
        (two.id, "m:2", ""),
    ]
    assert len(transcripts()) == 3


@pytest.mark.parametrize(
    ("history", "outcomes"),
    [
        ([HELLO, CALLS], [INTERRUPTED, INTERRUPTED]),
        ([HELLO, CALLS, ModelRequest([ToolReturnPart("a", "done", "1")])], [INTERRUPTED, "done"]),
        ([HELLO, CALLS, HELLO], [INTERRUPTED, INTERRUPTED]),
        ([HELLO, CALLS, ModelResponse([TextPart("x")])], [INTERRUPTED, INTERRUPTED]),
        ([HELLO], []),
    ],
)
def test_every_call_has_a_result_afterwards(history: list, outcomes: list):
    given = [
        part.content
        for message in with_all_results(history)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert given == outcomes
