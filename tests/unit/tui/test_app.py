"""The terminal application, with a person who types and a scripted model."""

from pathlib import Path

import pytest
from pydantic_ai.messages import ModelRequest, ToolReturnPart

from dragoman.testing.model import Calls, Says
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = pytest.mark.requirement("AGT-1")


async def test_an_answer_is_shown_as_markdown(desk: Desk):
    async with desk.opened(Says(("# Result\n\nIt is **fo", "ur**, see `x`"))) as seat:
        await seat.say("what is 2+2?")
        assert "> what is 2+2?" in seat.text
        assert "Result\n\nIt is four, see x" in seat.text


async def test_a_tool_call_is_a_card_with_arguments_and_result(desk: Desk):
    async with desk.opened(Calls("mcp__desk__add", {"a": 1, "b": 2}), "3") as seat:
        await seat.say("add")
        assert "✓ add · desk\n  a: 1\n  b: 2\n  ⎿ 3" in seat.text
