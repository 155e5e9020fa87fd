"""`dragoman` in a terminal: the application as it is installed, with a provider on loopback."""

import json
import os
import re
import select
import signal
import sys
import termios
import time
from pathlib import Path
from typing import Any, Self

import pytest

from tests.e2e.command import LIMIT_SECONDS
from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AGT-1")]

READY = "Enter sends"
"""What is on the screen when keys count."""
LEAVES_SCREEN = "\x1b[?1049l"
_SEQUENCES = re.compile(
    r"\x1b(?:\[[0-9;?<>=]*[ -/]*[A-Za-z~]|[()][A-Z0-9]|[=>NOc78]|P.*?\x1b\\|\].*?(?:\x07|\x1b\\))"
)


class Window(Terminal):
    """The application in a terminal of 100 columns and 40 lines."""

    def __init__(self, provider: FakeProvider, *words: str, env: dict[str, str] | None = None) -> None:
        said = ("--model", "anthropic:claude-sonnet-5", "--base-url", provider.url)
        super().__init__(*said, *words, env={"DRAGOMAN_PLAIN": "", **(env or {})})
        self._seen = 0

    def __enter__(self) -> Self:
        super().__enter__()
        self._manners = termios.tcgetattr(self._master)
        return self

    @property
    def raw(self) -> str:
        return self._output.decode(errors="replace")

    @property
    def text(self) -> str:
        return _SEQUENCES.sub("", self.raw)

    def sees(self, text: str) -> None:
        """Waits until the text is painted, after what was seen before."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while (at := self.text.find(text, self._seen)) < 0:
            ready = select.select([self._master], [], [], max(0.0, deadline - time.monotonic()))[0]
            assert ready, f"{text!r} never appeared in {self.text[-3000:]!r}"
            self._output += os.read(self._master, 65536)
        self._seen = at + len(text)

    def says(self, text: str) -> None:
        self.type(text.encode())
        self.sees(text[-1])
        self.type(b"\r")

    @property
    def is_as_before(self) -> bool:
        """Whether the terminal echoes and waits for lines again, as it did."""
        return termios.tcgetattr(self._master)[3] == self._manners[3]


@pytest.fixture(autouse=True)
def demo(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo server, in the person's settings."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-key")
    folder = home / ".dragoman"
    folder.mkdir(exist_ok=True)
    entry = {"command": sys.executable, "args": ["-m", "dragoman.demo"]}
    (folder / "settings.json").write_text(json.dumps({"mcpServers": {"demo": entry}}))


def kept(home: Path) -> Any:
    return json.loads((home / ".dragoman" / "settings.json").read_text()).get("permissions")


def test_a_question_is_answered_once_and_permanently(home: Path) -> None:
    add = ("mcp__demo__add", {"a": 40, "b": 2})
    with FakeProvider([add], ["It is 42."], [add], ["Still 42."]) as provider, Window(provider) as window:
        window.sees(READY)
        window.says("40 and 2?")
        window.sees("letter or")
        window.type(b"w")
        window.sees("It is 42.")
        window.says("again")
        window.sees("Still 42.")
        window.type(b"\x04")
        output = window.finish()
        assert window.is_as_before
    assert window.process.returncode == 0, output[-2000:]
    assert provider.tool_results(3) == ["42", "42"]
    assert kept(home) == {"allow": ["mcp__demo"]}
    assert "dragoman --resume" in output


def test_escape_stops_a_command_and_the_conversation_continues() -> None:
    sleep = ("Bash", {"command": "sleep 300; echo never"})
    words = ("--allowed-tools", "Bash")
    with FakeProvider([sleep], ["All right."]) as provider, Window(provider, *words) as window:
        window.sees(READY)
        window.says("sleep")
        window.sees("running")
        window.type(b"\x1b")
        window.sees("Interrupted.")
        window.says("go on")
        window.sees("All right.")
        window.type(b"\x03\x03")
        window.finish()
    assert window.process.returncode == 0
    assert "interrupted" in provider.tool_results(1)[0]


@pytest.mark.parametrize("moment", ["at rest", "during a call", "at a question"])
def test_sigterm_restores_the_terminal(moment: str) -> None:
    sleep = ("Bash", {"command": "sleep 300"})
    words = ("--allowed-tools", "Bash") if moment == "during a call" else ()
    with FakeProvider([sleep]) as provider, Window(provider, *words) as window:
        window.sees(READY)
        if moment != "at rest":
            window.says("sleep")
            window.sees("running" if moment == "during a call" else "letter or")
        window.process.send_signal(signal.SIGTERM)
        output = window.finish()
        assert window.is_as_before
    assert LEAVES_SCREEN in output
    assert window.process.returncode == 130


def test_without_colours_no_colour_is_sent() -> None:
    with FakeProvider(["Hello."]) as provider, Window(provider, env={"NO_COLOR": "1"}) as window:
        window.sees(READY)
        window.says("hi")
        window.sees("Hello.")
        window.type(b"\x04")
        output = window.finish()
    colours = {tuple(map(int, each)) for each in re.findall(r"[34]8;2;(\d+);(\d+);(\d+)", output)}
    assert all(red == green == blue for red, green, blue in colours), colours


@pytest.mark.parametrize(
    ("words", "env"), [(("--plain",), {}), ((), {"TERM": "dumb"}), ((), {"DRAGOMAN_PLAIN": "1"})]
)
def test_the_conversation_is_plain_text_with_the_plain_option(
    words: tuple[str, ...], env: dict[str, str]
) -> None:
    with FakeProvider(["Hello."]) as provider, Window(provider, *words, env=env) as window:
        window.sees("> ")
        window.type(b"hi\n")
        window.sees("Hello.")
        window.sees("> ")
        window.type(b"\x04")
        output = window.finish()
    assert "\x1b[?1049h" not in output


def test_in_plain_mode_a_server_is_allowed_and_rules_are_shown(home: Path) -> None:
    add = ("mcp__demo__add", {"a": 40, "b": 2})
    script = ([add], ["It is 42."], [add], ["Still 42."])
    with FakeProvider(*script) as provider, Window(provider, "--plain") as window:
        window.sees("> ")
        window.type(b"40 and 2?\n")
        window.sees("for every tool of demo: allow mcp__demo")
        window.sees("w/n/t: ")
        window.type(b"w")
        window.sees("It is 42.")
        window.type(b"again\n")
        window.sees("Still 42.")
        window.type(b"/permissions deny Bash\n")
        window.sees("deny  Bash  this session")
        window.sees("allow mcp__demo  user: ")
        window.sees("Where no rule applies, mode default")
        window.type(b"/permissions Bash\n")
        window.sees("Write allow, ask or deny")
        window.type(b"\x04")
        window.finish()
    assert window.process.returncode == 0
    assert kept(home) == {"allow": ["mcp__demo"]}


def test_in_plain_mode_conversations_are_cleared_and_resumed_and_files_mentioned(home: Path) -> None:
    (home / "work" / "plan.txt").write_text("first the roof")
    with FakeProvider(["One."], ["Two."], ["Three."]) as provider, Window(provider, "--plain") as window:
        window.sees("> ")
        window.type(b"read @plan.txt now\n")
        window.sees("One.")
        window.type(b"/clear\n/resume\n")
        window.sees("  1  ")
        window.sees("read @plan.txt now")
        window.type(b"hello\n")
        window.sees("Two.")
        window.type(b"/resume 2\n")
        window.sees("there are 1 earlier conversations here")
        window.type(b"/resume 20000101-000000-000000\n")
        window.sees("there is no conversation")
        window.type(b"/resume 1\n")
        window.sees("The conversation is continued after 2 messages.")
        window.type(b"and now?\n")
        window.sees("Three.")
        window.type(b"/nothing\n")
        window.sees("There is no command /nothing.")
        window.type(b"\x04")
        window.finish()
    assert window.process.returncode == 0
    said = [_texts(request) for request in provider.requests]
    mentioned = 'read @plan.txt now\n\n<file name="plan.txt">\nfirst the roof\n</file>'
    assert said == [[mentioned], ["hello"], [mentioned, "One.", "and now?"]]


def _texts(request: dict[str, Any]) -> list[str]:
    return [part["text"] for message in request["messages"] for part in message["content"]]
