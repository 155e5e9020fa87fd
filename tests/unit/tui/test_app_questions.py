"""Questions inside the application: answered, moot, hostile, typed ahead."""

import asyncio
import contextvars
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    PermissionAnswer,
    PermissionQuestion,
    SamplingMessage,
    SamplingRequest,
    SamplingReview,
    UrlElicitation,
)
from dragoman.testing.model import Calls
from dragoman.tui import interaction as interaction_module
from dragoman.tui import question_view
from dragoman.tui.permission_question import PermissionView, answers_to, folder_rules, question_text
from tests.unit.tui.desk import Desk, Seat, desk

pytestmark = pytest.mark.slow

__all__ = ["desk"]

QUESTION = PermissionQuestion(
    server="box",
    tool="mcp__box__put",
    title="Put",
    arguments={},
    rule="mcp__box__put@00",
    server_rule="mcp__box",
)


async def asked(seat: Seat, name: str, question: Any) -> asyncio.Task[Any]:
    """Has the host's person asked, and waits until the keyboard is at the question."""
    task = asyncio.create_task(getattr(seat.app._interaction, name)(question))
    await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
    return task


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("y", PermissionAnswer(True)),
        ("s", PermissionAnswer(True, for_session=True)),
        ("a", PermissionAnswer(True, always="user")),
        ("p", PermissionAnswer(True, always="local")),
        ("w", PermissionAnswer(True, always="user", whole_server=True)),
        ("n", PermissionAnswer(False)),
    ],
)
async def test_each_key_is_an_answer(desk: Desk, key: str, answer: PermissionAnswer):
    async with desk.opened() as seat:
        task = await asked(seat, "allow", QUESTION)
        await seat.pilot.press(key)
        assert await task == answer
        assert not seat.app.query(PermissionView)
        assert seat.app.focused is seat.app.prompt


@pytest.mark.parametrize(
    ("fields", "keys"),
    [
        ({}, "yspawnt"),
        ({"is_rememberable": False}, "ynt"),
        ({"rule": "", "server_rule": ""}, "ysnt"),
        ({"server": "", "server_rule": ""}, "ysapnt"),
    ],
)
def test_only_answers_that_have_an_effect_are_offered(fields: dict[str, Any], keys: str):
    assert "".join(sorted(answers_to(structs.replace(QUESTION, **fields)))) == "".join(sorted(keys))


async def test_a_server_is_allowed_from_the_question_and_not_asked_about_again(desk: Desk):
    script = [Calls("mcp__desk__add", {"a": 1, "b": 2}), Calls("mcp__desk__lines", {"n": 1}), "done"]
    home = Path.home() / ".dragoman"
    home.mkdir(exist_ok=True)
    async with desk.opened(*script, mode="default", is_configured=True) as seat:
        await seat.send("go")
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("w")
        await seat.idle()
        assert "✓ add · desk" in seat.text
        assert "✓ lines · desk" in seat.text
    kept = json.loads((home / "settings.json").read_text())
    assert kept["permissions"] == {"allow": ["mcp__desk"]}


async def test_a_question_that_is_no_longer_needed_disappears(desk: Desk):
    async with desk.opened() as seat:
        task = await asked(seat, "allow", QUESTION)
        task.cancel()
        await seat.until(lambda: not seat.app.query(PermissionView))
        assert not seat.app._questions.is_asking


async def test_escape_at_a_question_interrupts_the_turn_and_refuses_nothing(desk: Desk):
    async with desk.opened(Calls("mcp__desk__add", {"a": 1, "b": 2}), mode="default") as seat:
        await seat.send("add")
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("escape")
        await seat.idle()
        assert "■ add · desk  interrupted" in seat.text
        assert not seat.app.query(PermissionView)


async def test_keys_typed_for_the_prompt_answer_no_question(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(question_view, "QUIET_SECONDS", 30.0)
    async with desk.opened() as seat:
        await seat.type("wh")
        task = asyncio.create_task(seat.app._interaction.allow(QUESTION))
        await seat.until(lambda: seat.app.query(PermissionView))
        await seat.type("y not")
        assert seat.app.prompt.text == "why not"
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])


async def test_a_question_waits_while_a_message_is_being_written(desk: Desk):
    async with desk.opened() as seat:
        await seat.type("mmm")
        task = await asked(seat, "allow", QUESTION)
        assert seat.shown("#question .keys") == question_view.WRITING_HINT
        await seat.type("also")  # `a` would allow it for ever
        await seat.pilot.pause(0.05)
        assert (task.done(), seat.app.prompt.text) == (False, "mmmalso")
        await seat.pilot.press("ctrl+g")
        await seat.pilot.press("n")
        assert await task == PermissionAnswer(False)


async def test_a_question_takes_the_keyboard_when_the_message_is_cleared(desk: Desk):
    async with desk.opened() as seat:
        await seat.type("m")
        task = await asked(seat, "allow", QUESTION)
        await seat.pilot.press("backspace")
        await seat.until(lambda: seat.shown("#question .keys") != question_view.WRITING_HINT)
        await seat.pilot.press("y")
        assert await task == PermissionAnswer(True)


async def test_a_form_is_completed_in_the_application(desk: Desk):
    schema = {"type": "object", "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}}
    question = FormElicitation(server="box", message="Details?", schema=schema)
    async with desk.opened() as seat:
        task = await asked(seat, "elicit_form", question)
        await seat.type("Broken")
        await seat.pilot.press("enter")
        await seat.type("3")
        await seat.pilot.press("ctrl+s")
        assert await task == FormAnswer("accept", {"title": "Broken", "n": 3})
        assert "box asked for information: sent" in seat.text


async def test_a_form_with_defaults_is_shown_for_a_task_outside_the_application(desk: Desk):
    """As the tasks do that read from servers: they were started before the application."""
    schema = {"type": "object", "properties": {"name": {"type": "string", "default": "Ada"}}}
    question = FormElicitation(server="box", message="Details?", schema=schema)
    async with desk.opened() as seat:
        form = seat.app._interaction.elicit_form(question)
        task = asyncio.create_task(form, context=contextvars.Context())
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("ctrl+s")
        assert await task == FormAnswer("accept", {"name": "Ada"})


async def test_the_shown_keys_of_a_question_are_valid_while_a_message_is_written(desk: Desk):
    async with desk.opened() as seat:
        task = await asked(seat, "allow", QUESTION)
        await seat.pilot.press("t")
        writing = "Enter refuses with this message · Esc back to the answers"
        await seat.until(lambda: seat.shown("#question .keys") == writing)
        await seat.pilot.press("escape")
        await seat.until(lambda: seat.shown("#question .keys").startswith("letter or"))
        await seat.pilot.press("n")
        assert await task == PermissionAnswer(False)


async def test_a_page_is_opened_only_after_the_person_agrees(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    opened: list[str] = []
    monkeypatch.setattr(interaction_module, "open_page", lambda url: opened.append(url) or True)
    question = UrlElicitation(
        server="box", message="Sign in", url="https://example.com/a", host="example.com"
    )
    async with desk.opened() as seat:
        task = await asked(seat, "elicit_url", question)
        await seat.pilot.press("n")
        assert (await task, opened) == ("decline", [])
        task = await asked(seat, "elicit_url", question)
        await seat.pilot.press("y")
        assert (await task, opened) == ("accept", ["https://example.com/a"])
        task = await asked(seat, "wait_for_url", question)
        await seat.pilot.press("y")
        assert await task is True


async def test_a_sampling_request_is_reviewed_in_the_application(desk: Desk):
    message = SamplingMessage("user", ({"type": "text", "text": "Sum up"},))
    review = SamplingReview(SamplingRequest(server="notes", messages=(message,), max_tokens=10))
    async with desk.opened() as seat:
        task = await asked(seat, "review_sampling", review)
        await seat.pilot.press("ctrl+s")
        assert await task is review


def test_hostile_text_in_a_question_is_data():
    question = PermissionQuestion(
        server="box",
        tool="mcp__box__put",
        title="[bold]x[/]\x1b[2J",
        arguments={"a": "gоod"},
        reason="\x1b[31m",
    )
    text = question_text(question).plain
    assert "\x1b" not in text
    assert "[bold]x[/]" in text
    assert "These words mix alphabets" in text


@pytest.mark.parametrize(
    ("fields", "is_offered"),
    [
        ({}, True),
        ({"tool": "Bash"}, False),
        ({"server": "box"}, False),
        ({"arguments": {"file_path": "/elsewhere/a.txt"}}, False),
        ({"reason": "rule ask Edit of user settings"}, False),
    ],
)
def test_all_changes_of_a_folder_are_offered_only_for_files_in_it(fields: dict[str, Any], is_offered: bool):
    question = PermissionQuestion(
        server="",
        tool="Edit",
        title="",
        arguments={"file_path": '/work shop/"*"/a.txt'},
        reason="no rule allows it",
    )
    assert bool(folder_rules(structs.replace(question, **fields), Path("/work shop"))) is is_offered


async def test_all_changes_in_the_folder_are_allowed_for_the_session_and_none_elsewhere(
    desk: Desk, tmp_path: Path
):
    outside = tmp_path / "outside.txt"
    writes = [
        Calls("Write", {"file_path": name, "content": "x"}) for name in ("a.txt", "b.txt", str(outside))
    ]
    async with desk.opened(*writes, "done", mode="default") as seat:
        await seat.send("write")
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("f")
        await seat.until(lambda: "outside.txt" in seat.shown("PermissionView Static"))
        assert Path("a.txt").exists()
        assert Path("b.txt").exists()
        await seat.until(lambda: seat.shown("#question .keys") not in ("", "…"))
        await seat.pilot.press("n")
        await seat.idle()
    assert not outside.exists()


def test_a_changed_definition_is_reported_once():
    reason = "its definition has changed since it was allowed"
    changed = structs.replace(QUESTION, has_changed=True, reason=reason)
    text = question_text(changed).plain
    assert "It was allowed before, and has changed since." in text
    assert reason not in text
    assert "the rule Bash" in question_text(structs.replace(changed, reason="the rule Bash")).plain
