"""T393: unescaped text that a command writes to a terminal cannot control it or hide anything."""

import os
import pty
import subprocess
import sys

import pytest

pytestmark = pytest.mark.requirement("CAT-2")

PROGRAM = """
import sys
import click
import dragoman.cli.main

def forgetful():
    text = "a\\x1b[2J\\x1b]0;title\\x07b\\u202ec\\u200b\\U000e0041\\x9b1A\\r"
    text += click.style("red", fg="red") + " \\u2713\\n"
    click.echo(text, nl=False)
    click.echo(text, nl=False, err=True)
    print(text, end="")

dragoman.cli.main.main = forgetful
sys.argv = ["dragoman", "tools"]
from dragoman.cli.entry import main
main()
"""
SHOWN = "a\\x1b[2J\\x1b]0;title\\x07b\\u202ec\\u200b\\U000e0041\\x9b1A\\x0d\x1b[31mred\x1b[0m ✓\n"
RAW = "a\x1b[2J\x1b]0;title\x07b\u202ec\u200b\U000e0041\x9b1A\r\x1b[31mred\x1b[0m ✓\n"


def test_control_and_deceptive_characters_are_escaped_and_colours_are_kept():
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave
    )
    os.close(slave)
    seen = b""
    while piece := _read(master):
        seen += piece
    assert process.wait(timeout=30) == 0
    os.close(master)
    assert seen.decode().replace("\r\n", "\n") == SHOWN * 3


def test_a_pipe_receives_the_text_unchanged():
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, env={**os.environ, "PYTHONUTF8": "1"}
    )
    # click removes escape sequences if there is no terminal; `print` writes everything.
    assert ended.stdout.decode().endswith(RAW)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux reports this when no process has the terminal open
        return b""
