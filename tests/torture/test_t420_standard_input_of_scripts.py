"""T420: standard input of `dragoman -p` and `call` that stays open, is not text, or is not JSON."""

import signal
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest

from dragoman.cli.agent.headless import _prompt_in
from tests.e2e.command import DRAGOMAN, LIMIT_SECONDS, run

pytestmark = pytest.mark.requirement("AGT-1")
MODEL = ("--model", "openai-chat:m", "--base-url", "http://127.0.0.1:9/v1")
STREAMS = ("--input-format", "stream-json", "--output-format", "stream-json")


def message(text: str) -> str:
    return f'{{"type":"user","message":{{"role":"user","content":{text}}}}}\n'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_t420_a_signal_ends_the_program_while_it_waits_for_input(
    home: Path, monkeypatch: pytest.MonkeyPatch, number: int
):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([DRAGOMAN, *STREAMS, *MODEL], **pipes) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            assert b'"init"' in process.stdout.readline()
            process.send_signal(number)
            code = process.wait(LIMIT_SECONDS)  # standard input is open meanwhile
        finally:
            process.kill()
        assert (code, process.stderr.read()) == (130, b"interrupted\n")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[" * 100_000, id="nested deeply"),
        pytest.param(message('[{"type":"text","text":1}]'), id="a number"),
        pytest.param(message("{}")[:-3], id="cut off"),
    ],
)
def test_t420_a_line_that_is_not_a_message_is_named_in_the_error(line: str):
    with pytest.raises(click.UsageError, match="a line of the input is not"):
        _prompt_in(line)


def test_t420_a_lone_surrogate_in_a_message_is_replaced():
    assert _prompt_in(message(r'"a\ud83db"')) == "a\ufffdb"
    assert _prompt_in(message(r'"a\ud83d\ude00b"')) == "a😀b"


@pytest.mark.parametrize("words", [(*STREAMS, *MODEL), ("call", "--mcp-config", "demo", "add", "-")])
def test_t420_bytes_that_are_not_text_are_a_readable_error(
    home: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    monkeypatch.setenv("PYTHONIOENCODING", "utf-8:strict")  # as with most locales
    given = b'{"a": "\xff"}\n'.decode(errors="surrogateescape")
    done = run(*words, input=given, errors="surrogateescape")
    expected = (
        "a line of the input is not" if words[0] != "call" else "stdin cannot be read: it is not UTF-8 text"
    )
    assert done.returncode == 2
    assert f"Error: {expected}" in done.stderr
    assert "Traceback" not in done.stderr


def test_t420_a_prompt_that_is_too_long_is_refused_and_not_shortened(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-key")
    done = run("-p", "-", *MODEL, input="x" * (10 * 1024 * 1024 + 1))
    assert done.returncode == 2
    assert "the prompt on stdin has more than 10485760 characters" in done.stderr
