"""Questions of servers on the screen, with a person who types."""

import asyncio
from typing import Any

import pytest
from msgspec import structs
from textual.events import Key
from textual.widgets import Static, TextArea

from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    RelatedCall,
    SamplingAnswer,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    UrlElicitation,
)
from dragoman.tui.form import FieldView, FormView
from dragoman.tui.question_view import QuestionView
from dragoman.tui.questions import INTERRUPTED, QuestionApp
from dragoman.tui.sampling_review import SamplingView
from dragoman.tui.web_page_questions import UrlView

pytestmark = [pytest.mark.slow, pytest.mark.requirement("ASK-1")]

FIELDS: dict[str, Any] = {
    "title": {"type": "string", "title": "Title", "minLength": 3},
    "days": {"type": "integer", "minimum": 1, "maximum": 30},
    "mail": {"type": "string", "format": "email"},
    "story": {"type": "string", "default": "Once upon a time"},
    "urgent": {"type": "boolean", "default": True},
    "priority": {"type": "string", "enum": ["low", "mid", "high"], "default": "mid"},
    "place": {"type": "string", "enum": [f"place {n}" for n in range(10)]},
    "labels": {"type": "array", "items": {"type": "string", "enum": ["bug", "ui"]}, "default": ["ui"]},
}


def form(*names: str, required: tuple[str, ...] = ()) -> FormElicitation:
    schema = {"type": "object", "properties": {name: FIELDS[name] for name in names}}
    return FormElicitation(
        server="tracker", message="Details?", schema={**schema, "required": list(required)}
    )


async def typed(question: QuestionView[Any], *keys: str) -> Any:
    """What the question comes to when these keys are pressed; words are typed letter by letter."""
    app = QuestionApp(question)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(*(key[1:] if key.startswith("'") else [key]))
        await pilot.pause()
    return app.return_value


async def shown(question: QuestionView[Any], *keys: str) -> tuple[str, str | None]:
    """What is on the screen after these keys, and which field is to be typed into."""
    app = QuestionApp(question)
    async with app.run_test(size=(80, 40)) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(*(key[1:] if key.startswith("'") else [key]))
        await pilot.pause()
        texts = [str(each.render()) for each in app.screen.query(Static)]
        texts += [each.text for each in app.screen.query(TextArea)]
        views = [view.field.name for view in app.screen.query(FieldView) if view.editor is app.focused]
        return "\n".join(texts), next(iter(views), None)


async def test_typed_values_are_sent():
    answer = await typed(FormView(form("title", "days")), "'Broken", "enter", "'12", "enter")
    assert answer == FormAnswer("accept", {"title": "Broken", "days": 12})


async def test_every_kind_of_field_can_be_reached_and_changed_with_keys():
    question = form("urgent", "priority", "labels", "place")
    keys = (
        "space",
        "tab",
        "down",
        "down",
        "space",
        "tab",
        "space",
        "tab",
        "enter",
        "down",
        "enter",
        "ctrl+s",
    )
    answer = await typed(FormView(question), *keys)
    assert answer == FormAnswer(
        "accept", {"urgent": False, "priority": "high", "labels": ("bug", "ui"), "place": "place 0"}
    )


async def burst(question: QuestionView[Any], *keys: str) -> Any:
    """What the question comes to when all keys arrive at once, as from a terminal that was read late."""
    app = QuestionApp(question)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for key in keys:
            for each in key[1:] if key.startswith("'") else [key]:
                app.post_message(Key(each, each if len(each) == 1 else None))
        async with asyncio.timeout(10):
            while app.is_running and app.return_value is None:
                await pilot.pause()
    return app.return_value


@pytest.mark.parametrize(
    ("names", "keys", "content"),
    [
        pytest.param(
            ("title", "days"), ("'Broken", "tab", "'12", "ctrl+s"), {"title": "Broken", "days": 12}, id="text"
        ),
        pytest.param(
            ("priority", "title"),
            ("down", "down", "space", "tab", "'abc", "ctrl+s"),
            {"priority": "high", "title": "abc"},
            id="radio buttons, then text",
        ),
        pytest.param(
            ("title", "priority"),
            ("'abc", "tab", "down", "space", "up", "space", "ctrl+s"),
            {"title": "abc", "priority": "low"},
            id="radio buttons at the end",
        ),
        pytest.param(
            ("urgent", "labels", "place", "title"),
            ("space", "tab", "space", "tab", "enter", "down", "down", "enter", "tab", "'abc", "ctrl+s"),
            {"urgent": False, "labels": ("bug", "ui"), "place": "place 1", "title": "abc"},
            id="lists",
        ),
    ],
)
async def test_keys_that_arrive_at_once_are_taken_in_order(
    names: tuple[str, ...], keys: tuple[str, ...], content: dict[str, Any]
):
    assert await burst(FormView(form(*names)), *keys) == FormAnswer("accept", content)


async def test_an_invalid_value_is_reported_beside_its_field_and_nothing_is_sent():
    question = form("title", "days", "mail", required=("title", "days"))
    text, _ = await shown(FormView(question), "'ab", "enter", "'31", "enter", "'me", "ctrl+s")
    assert "must have at least 3 characters" in text
    assert "must be at most 30" in text
    assert "must be an e-mail address" in text
    text, focused = await shown(FormView(question), "tab", "ctrl+s")
    assert text.count("is required") == 2
    assert focused == "title", "the first that is wrong"


async def test_defaults_are_kept_and_optional_fields_left_out():
    answer = await typed(FormView(form("story", "urgent", "priority", "labels", "mail")), "ctrl+s")
    kept = {"story": "Once upon a time", "urgent": True, "priority": "mid", "labels": ("ui",)}
    assert answer == FormAnswer("accept", kept)


@pytest.mark.parametrize(
    ("key", "answer"), [("ctrl+n", FormAnswer("decline")), ("escape", FormAnswer("cancel"))]
)
async def test_a_form_can_be_declined_and_left(key: str, answer: FormAnswer):
    assert await typed(FormView(form("title")), key) == answer


async def test_ctrl_c_interrupts_the_command():
    app = QuestionApp(FormView(form("title")))
    async with app.run_test() as pilot:
        await pilot.press("ctrl+c")
    assert app.return_code == INTERRUPTED


async def test_the_server_the_call_and_the_message_are_shown_as_data():
    question = FormElicitation(
        server="tracker",
        message="[bold]Hi\x1b[2J[/bold]",
        schema={"type": "object", "properties": {"a": {"type": "string", "title": "[red]A"}}},
        calls=(RelatedCall("tools/call", "mcp__tracker__create"),),
    )
    text, _ = await shown(FormView(question))
    assert "tracker asks for information\nduring mcp__tracker__create\n“[bold]Hi" in text
    assert "[red]A" in text
    assert "\x1b" not in text


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize(("key", "action"), [("y", "accept"), ("n", "decline"), ("escape", "cancel")])
async def test_a_page_is_shown_in_full_and_answered_with_a_key(key: str, action: str):
    question = UrlElicitation(
        server="drive",
        message="Sign in",
        url="https://user@accounts.xn--exmple-cua.com/a?b=1",
        host="accounts.xn--exmple-cua.com",
        warnings=("the host has other letters",),
    )
    text, _ = await shown(UrlView(question))
    assert "host  accounts.xn--exmple-cua.com\nhttps://user@accounts.xn--exmple-cua.com/a?b=1" in text
    assert "! the host has other letters" in text
    assert await typed(UrlView(question), key) == action


REQUEST = SamplingRequest(
    server="notes",
    messages=(SamplingMessage("user", ({"type": "text", "text": "Sum up"},)),),
    max_tokens=200,
    system_prompt="Be short.",
)


@pytest.mark.requirement("ASK-4")
async def test_a_sampling_request_is_sent_changed_or_refused():
    review = SamplingReview(REQUEST)
    assert await typed(SamplingView(review), "ctrl+s") is review
    assert await typed(SamplingView(review), "escape") is None
    changed = await typed(SamplingView(review), "end", "'!", "ctrl+s")
    assert changed.request.messages[-1].content == ({"type": "text", "text": "Sum up!"},)
    text, _ = await shown(SamplingView(review))
    assert "system    Be short." in text
    assert text.endswith("Sum up")


@pytest.mark.requirement("ASK-4")
async def test_other_content_is_kept_when_the_text_is_changed():
    result = {"type": "tool_result", "toolUseId": "t1", "content": [{"type": "text", "text": "seen"}]}
    blocks = (result, {"type": "text", "text": "Go on"})
    review = SamplingReview(structs.replace(REQUEST, messages=(SamplingMessage("user", blocks),)))
    changed = await typed(SamplingView(review), "end", "'!", "ctrl+s")
    assert changed.request.messages[-1].content == (result, {"type": "text", "text": "Go on!"})
    text, _ = await shown(SamplingView(review))
    assert '"toolUseId": "t1"' in text


@pytest.mark.requirement("ASK-4")
async def test_an_answer_of_the_model_can_be_changed_before_it_is_sent():
    answer = SamplingAnswer(content=({"type": "text", "text": "Short"},), model="m")
    changed = await typed(SamplingView(SamplingReview(REQUEST, answer)), "end", "'er", "ctrl+s")
    assert changed.answer.content == ({"type": "text", "text": "Shorter"},)
    assert changed.request is REQUEST
