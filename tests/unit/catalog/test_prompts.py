"""Prompts: as servers list them, as a person types them, and as they come back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, to_builtins

from dragoman.catalog.commands import PromptCommand, find, read_arguments, split_command
from dragoman.catalog.prompts import (
    ARGUMENT_LIMIT,
    COMPLETION_LIMIT,
    TEXT_LIMIT,
    Prompt,
    PromptArgument,
    read_completion,
    read_prompt,
    read_prompt_result,
)
from dragoman.catalog.texts import DESCRIPTION_LIMIT
from dragoman.cleaning import is_safe
from dragoman.content.blocks import ImageBlock, ResourceBlock, TextBlock, UnknownBlock
from dragoman.errors import CallError, InvalidArguments
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.codec import Unreadable
from tests.cpu_time import CpuTimer

pytestmark = pytest.mark.requirement("CAT-10")
BOX = ServerName("box")


def raw(value: Any) -> Raw:
    return Raw(json.dumps(value).encode())


def prompt(*arguments: str, name: str = "review") -> Prompt:
    """An argument that ends with `!` is required."""
    return Prompt(
        server=BOX,
        name=QualifiedName(f"mcp__box__{name}"),
        wire_name=name,
        arguments=tuple(PromptArgument(each.rstrip("!"), required=each.endswith("!")) for each in arguments),
    )


# Lists.


def test_a_prompt_is_the_definition_of_its_server_cleaned():
    found = read_prompt(
        BOX,
        raw(
            {
                "name": "review",
                "title": "R\u200bview",
                "description": "d" * 3000,
                "arguments": [{"name": "a", "description": "x\x1b[1my", "required": True}, {"name": "b"}],
            }
        ),
    )

    assert (found.wire_name, found.title) == ("review", "Rview")
    assert len(found.description) <= DESCRIPTION_LIMIT + 40
    assert found.description.endswith("more characters]")
    assert found.arguments == (PromptArgument("a", None, "xy", True), PromptArgument("b"))


@pytest.mark.parametrize(
    "listed",
    [
        7,
        {},
        {"name": 7},
        {"name": " "},
        {"name": "a\u202eb"},
        {"name": "a" * 2000},
        {"name": "a", "arguments": {}},
        {"name": "a", "arguments": [{}]},
        {"name": "a", "arguments": [{"name": "x"}, {"name": "x"}]},
        {"name": "a", "arguments": [{"name": "x\u200b"}]},
        {"name": "a", "arguments": [{"name": str(n)} for n in range(ARGUMENT_LIMIT + 1)]},
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_prompt_that_cannot_be_called_is_left_out(listed: Any):
    with pytest.raises(Unreadable):
        read_prompt(BOX, raw(listed))


# Commands.


@pytest.mark.parametrize(
    ("arguments", "typed", "read"),
    [
        (["a", "b"], "", {}),
        (["a", "b"], "one two", {"a": "one", "b": "two"}),
        (["a", "b"], "  one\t two  ", {"a": "one", "b": "two"}),
        (["a", "b"], '"one two" three', {"a": "one two", "b": "three"}),
        (["a", "b"], "'one two' three", {"a": "one two", "b": "three"}),
        (["a", "b"], "b=2 1", {"a": "1", "b": "2"}),
        (["a", "b"], 'b="2 3" 1', {"a": "1", "b": "2 3"}),
        (["a"], "all of   the rest", {"a": "all of the rest"}),
        (["a", "b"], "1 2 3 4", {"a": "1", "b": "2 3 4"}),
        (["a", "b"], "1 2 3 a=0", {"a": "0", "b": "1 2 3"}),
        (["a"], "don't stop", {"a": "don't stop"}),
        (["a"], 'say "hi there" now', {"a": "say hi there now"}),
        (["a"], r'"a \" b \\ c \n"', {"a": r'a " b \ c \n'}),
        (["a"], r"C:\dir\x", {"a": r"C:\dir\x"}),
        (["a"], r"'C:\dir\'", {"a": "C:\\dir\\"}),
        (["a"], 'x"y', {"a": 'x"y'}),
        (["a"], '"one"two', {"a": "onetwo"}),
        (["a"], '""', {"a": ""}),
        (["a", "b"], "a= 2", {"a": "", "b": "2"}),
        (["a"], "x=1", {"a": "x=1"}),
        (["a", "b"], "a=1 a=2", {"a": "1", "b": "a=2"}),
        (["a", "ab"], "ab=1", {"ab": "1"}),
        (["url"], "https://x/?a=b&c=d", {"url": "https://x/?a=b&c=d"}),
        (["größe"], "größe=groß", {"größe": "groß"}),
    ],
    ids=str,
)
def test_typed_words_are_assigned_to_the_prompts_arguments(
    arguments: list[str], typed: str, read: dict[str, str]
):
    assert read_arguments(prompt(*arguments), typed) == read


@pytest.mark.parametrize(
    ("arguments", "typed", "why"),
    [
        (["a!", "b!"], "", "needs 'a'; it needs 'b'"),
        (["a!", "b!"], "1", "needs 'b'"),
        (["a!", "b"], "b=1", "needs 'a'"),
        ([], "word", "takes no arguments"),
        (["a"], "a=1 more", "no argument left for 'more'"),
        (["a"], '"no end', 'begins with "no end has no end'),
        (["a"], "'", "has no end"),
        (["a"], '"\\', "has no end"),
        (["a"], 'a="x', "has no end"),
    ],
    ids=str,
)
def test_the_mistake_in_a_command_is_named(arguments: list[str], typed: str, why: str):
    with pytest.raises(InvalidArguments) as caught:
        read_arguments(prompt(*arguments), typed)
    assert why in str(caught.value)
    if "needs" in why:
        assert "usage: /mcp__box__review <a>" in str(caught.value)


def parse_command(line: str, prompts: list[Prompt]) -> PromptCommand:
    name, rest = split_command(line)
    found = find(name, prompts)
    return PromptCommand(found, read_arguments(found, rest))


def test_a_line_names_its_prompt_with_or_without_a_slash():
    prompts = [prompt("a"), prompt(name="greet")]

    assert parse_command("/mcp__box__review x", prompts).arguments == {"a": "x"}
    assert parse_command("  mcp__box__greet ", prompts).prompt.wire_name == "greet"
    assert parse_command("/mcp__box__review\nx y", prompts).arguments == {"a": "x y"}
    assert parse_command("/mcp__box__review\tx", prompts).arguments == {"a": "x"}


def test_a_long_text_is_split_quickly():
    started = CpuTimer()
    found = read_arguments(prompt("a", "b"), "word " * 20_000)

    assert found["b"].count("word") == 19_999
    assert started.seconds() < 2


@pytest.mark.parametrize("line", ["", "/", " / ", "\n"])
def test_a_line_without_a_prompt_name_is_an_error(line: str):
    with pytest.raises(CallError, match="no prompt named"):
        parse_command(line, [prompt()])


def test_an_unknown_prompt_is_reported_with_similar_names():
    with pytest.raises(CallError, match="no prompt named mcp__box__reviev") as caught:
        parse_command("/mcp__box__reviev x", [prompt("a")])
    assert caught.value.hint == "Did you mean mcp__box__review?"


@given(st.text(max_size=60), st.integers(0, 3))
def test_any_line_is_read_or_refused_with_a_message(typed: str, count: int):
    names = ["a", "b", "c"][:count]
    try:
        found = read_arguments(prompt(*names), typed)
    except InvalidArguments:
        return
    assert list(found) == [name for name in names if name in found]


@given(st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=3))
def test_any_quoted_word_is_read_back_unchanged(values: list[str]):
    names = ["a", "b", "c"][: len(values)]
    quoted = ['"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values]

    assert read_arguments(prompt(*names), " ".join(quoted)) == dict(zip(names, values))


def test_arguments_given_by_a_program_are_checked_too():
    checked = prompt("a!", "b")
    checked.check({"a": "1"})
    for wrong in ({}, {"a": "1", "c": "2"}, {"a": 1}):
        with pytest.raises(InvalidArguments):
            checked.check(wrong)


# Results.


@pytest.mark.parametrize(
    "content",
    [
        {
            "type": "resource_link",
            "uri": "x:\u202ey",
            "name": "n\u200b",
            "title": "t\u202e",
            "description": "d\u200b",
        },
        {"type": "resource_link", "uri": "x:y", "name": "n", "mimeType": "a/\u202eb"},
        {"type": "image", "data": "", "mimeType": "image/\u200bpng"},
        {"type": "audio", "data": "", "mimeType": "audio/\u200bwav"},
        {"type": "resource", "resource": {"uri": "x:\u200by", "mimeType": "a/\u202eb", "blob": "AA=="}},
        {"type": "holo\u200bgram", "text": "\u202e"},
        {"type": ["\u202e"], "text": "\u202e"},
        ["\u202e"],
    ],
    ids=str,
)
def test_a_message_contains_no_invisible_characters(content: Any):
    found = read_prompt_result(raw({"messages": [{"role": "user", "content": content}]}))[1]

    for message in found.messages:
        assert is_safe(json.dumps(to_builtins(message.content), ensure_ascii=False))
        assert is_safe(message.content.as_text())


def test_very_many_prompts_do_not_make_a_wrong_name_slow():
    prompts = [prompt(name=f"prompt_number_{number:05d}_of_this_server") for number in range(5000)]
    started = CpuTimer()
    with pytest.raises(CallError, match="no prompt"):
        find("mcp__box__prompt_nomber_x_of_this_serfer" + "x" * 100_000, prompts)

    assert started.seconds() < 0.5


def test_messages_are_cleaned_and_an_invalid_one_is_left_out_alone():
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    embedded = {"type": "resource", "resource": {"uri": "a:b", "text": "t\u202et"}}
    messages = [
        {"role": "user", "content": {"type": "text", "text": "a\u200bb\x1b[31mc"}},
        {"role": "assistant", "content": image},
        {"role": "system", "content": embedded},
        {"role": "user"},
        7,
        {"role": "user", "content": {"type": "hologram"}},
        {"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]},
    ]
    kind, reply = read_prompt_result(raw({"description": "d\u202e", "messages": messages}))

    assert (kind, reply.description) == ("complete", "d")
    texts = [each.content.as_text() for each in reply.messages]
    assert texts[0] == "abc"
    assert [type(each.content) for each in reply.messages] == [
        TextBlock,
        ImageBlock,
        ResourceBlock,
        UnknownBlock,
        TextBlock,
        TextBlock,
    ]
    assert [each.role for each in reply.messages[:3]] == ["user", "assistant", "user"]
    assert texts[2] == "tt"
    assert [problem[:9] for problem in reply.problems] == ["message 4", "message 5"]


def test_a_long_message_is_cut_visibly():
    said = {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * (TEXT_LIMIT + 9)}}]}
    _, reply = read_prompt_result(raw(said))

    text = reply.messages[0].content.as_text()
    assert len(text) <= TEXT_LIMIT + 40
    assert text.endswith("more characters]")


def test_a_reply_without_messages_is_malformed():
    for said in ({}, {"messages": None}, {"messages": 7}, 7):
        with pytest.raises(Unreadable):
            read_prompt_result(raw(said))
    assert read_prompt_result(raw({"resultType": "input_required"}))[0] == "input_required"


def test_completions_are_limited_and_contain_no_invisible_characters():
    many = [str(number) for number in range(150)]
    found = read_completion(raw({"completion": {"values": ["a\u202e", 7, "b\nc", *many], "total": 150}}))

    assert found.values == tuple(many[:COMPLETION_LIMIT])
    assert (found.has_more, found.total) == (True, 150)
    for said in ({}, {"completion": 7}):
        with pytest.raises(Unreadable):
            read_completion(raw(said))
