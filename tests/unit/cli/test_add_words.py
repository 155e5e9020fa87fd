"""`dragoman mcp add`: which words are ours, and which are the server's."""

from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.cli.commands.mcp.add import OptionsBeforeCommand, command, is_url, transport_of_url


def understood(*words: str) -> dict[str, Any]:
    """What is taken from a command line, without doing anything."""
    with command.make_context("add", list(words)) as context:
        return {key: value for key, value in context.params.items() if value not in (None, (), False)}


def test_how_the_words_of_mcp_add_are_read():
    assert isinstance(command, OptionsBeforeCommand)


BASE: dict[str, Any] = {"name": "box", "command_or_url": "npx"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("box npx", BASE),
        ("box npx -y pkg", {**BASE, "args": ("-y", "pkg")}),
        ("box npx -s user", {**BASE, "args": ("-s", "user")}),
        ("box npx --env=A --json", {**BASE, "args": ("--env=A", "--json")}),
        ("-s user box npx -y", {**BASE, "scope": "user", "args": ("-y",)}),
        ("box -s user npx -y", {**BASE, "scope": "user", "args": ("-y",)}),
        ("box --scope=user npx", {**BASE, "scope": "user"}),
        ("-suser box npx", {**BASE, "scope": "user"}),
        ("-e A=1 box -e B=2 npx -e C=3", {**BASE, "env": ("A=1", "B=2"), "args": ("-e", "C=3")}),
        ("box -- npx -y", {**BASE, "args": ("-y",)}),
        ("-- box npx -y", {**BASE, "args": ("-y",)}),
        ("box npx -- -y", {**BASE, "args": ("-y",)}),
        ("box npx -y -- x", {**BASE, "args": ("-y", "--", "x")}),
        ("box -- npx -- -y", {**BASE, "args": ("--", "-y")}),
        ("--force box npx --force", {**BASE, "force": True, "args": ("--force",)}),
        ("box -e --x=1 npx", {**BASE, "env": ("--x=1",)}),
        ("box npx --help", {**BASE, "args": ("--help",)}),
        ("box npx -", {**BASE, "args": ("-",)}),
        ("box -", {**BASE, "command_or_url": "-"}),
    ],
)
def test_options_precede_the_servers_command_and_later_words_belong_to_the_server(
    line: str, expected: dict[str, Any]
):
    assert understood(*line.split()) == expected


ADDRESS: dict[str, Any] = {"name": "box", "command_or_url": "https://x.example.com/mcp"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["box", "https://x.example.com/mcp"], ADDRESS),
        (["box", "https://x.example.com/mcp", "-s", "user"], {**ADDRESS, "scope": "user"}),
        (["-t", "sse", "box", "https://x.example.com/mcp"], {**ADDRESS, "transport": "sse"}),
        (["box", "https://x.example.com/mcp", "-H", "A: b", "--json", "-H", "C: d"],
         {**ADDRESS, "header": ("A: b", "C: d"), "as_json": True}),
        (["box", "https://x.example.com/mcp", "word"], {**ADDRESS, "args": ("word",)}),
        (["box", "https://x.example.com/mcp", "--", "--xaa"], {**ADDRESS, "args": ("--xaa",)}),
    ],
)  # fmt: skip
def test_options_may_follow_a_url(words: list[str], expected: dict[str, Any]):
    assert understood(*words) == expected


@pytest.mark.parametrize(
    "line",
    ["", "box", "-s user", "-s nowhere box npx", "--nonsense box npx", "box -s"],
)
def test_an_invalid_combination_is_refused(line: str):
    with pytest.raises(click.UsageError):
        understood(*line.split())


WORD = st.text(min_size=1, max_size=8).filter(lambda word: not word.startswith("-") and not is_url(word))


@given(WORD, WORD, st.lists(st.text(max_size=8), max_size=6).filter(lambda words: words[:1] != ["--"]))
def test_all_words_after_the_command_reach_the_server_unchanged(name: str, program: str, words: list[str]):
    with command.make_context("add", ["-s", "user", name, program, *words]) as context:
        assert context.params["name"] == name
        assert context.params["command_or_url"] == program
        assert context.params["args"] == tuple(words)


@given(WORD, WORD, st.lists(st.text(max_size=8), max_size=6))
def test_all_words_after_two_dashes_belong_to_the_server(name: str, program: str, words: list[str]):
    with command.make_context("add", [name, "--", program, *words]) as context:
        assert (context.params["command_or_url"], context.params["args"]) == (program, tuple(words))


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("https://x", True),
        ("HTTP://x", True),
        ("wss://x", True),
        ("ws://", True),
        ("ftp://x", True),
        ("https:/x", False),
        ("httpx", False),
        ("https", False),
        ("./https://x", False),
        ("", False),
    ],
)
def test_which_words_are_urls(word: str, expected: bool):
    assert is_url(word) is expected


@pytest.mark.parametrize(
    ("url", "transport"),
    [
        ("https://x.example.com/mcp", "http"),
        ("https://x.example.com/sse", "sse"),
        ("https://x.example.com/a/sse/", "sse"),
        ("https://x.example.com/mcp?x=/sse", "http"),
        ("https://x.example.com/assess", "http"),
        ("wss://x.example.com/sse", "ws"),
        ("WS://x.example.com", "ws"),
        ("https://${HOST}/mcp", "http"),
    ],
)
def test_the_transport_of_a_url(url: str, transport: str):
    assert transport_of_url(url) == transport
