"""A conversation of 300 turns with long results: keys stay quick, and memory small."""

import os
import statistics
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.tui.blocks import AnswerBlock, Block, PromptBlock, ToolBlock
from dragoman.tui.conversation import EXTRA_WIDGETS, WIDGET_LIMIT
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

TURNS = 300
PAINTED_EVERY = 5
"""Painting after each turn took most of the test's time, and on a busy machine all that a test may take."""
ANSWER = "## Found\n\n" + "Some words of an **answer** with `code` in it. " * 20 + "\n\n- one\n- two\n" * 5
RESULT = "\n".join(f"{number:6}  a line of a long result that nobody reads" for number in range(2000))


def memory_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def turn(number: int) -> list[Block]:
    call = ToolBlock(
        f"c{number}", "mcp__desk__lines", {"n": number}, state="done", result=f"{number}\n{RESULT}"
    )
    return [PromptBlock(f"question {number}"), call, AnswerBlock(f"{ANSWER}\n\nanswer {number}")]


async def key_seconds(seat: Any, keys: str = "abcdefghij") -> float:
    """From a key press to what is painted, the median."""
    times: list[float] = []
    for key in keys:
        start = time.perf_counter()
        await seat.pilot.press(key)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


@pytest.mark.slow
async def test_a_key_press_is_as_fast_after_300_turns_as_at_the_start_and_memory_stays_small(
    desk: Desk, capsys: pytest.CaptureFixture[str]
):
    async with desk.opened(size=(120, 40)) as seat:
        await key_seconds(seat)
        at_start, memory = await key_seconds(seat), memory_mb()
        for number in range(TURNS):
            for block in turn(number):
                seat.app.conversation.add(block)
            if number % PAINTED_EVERY == 0:
                await seat.pilot.pause()
        after, grown = await key_seconds(seat), memory_mb() - memory
        with capsys.disabled():
            print(
                f"\n{TURNS} turns: key {at_start * 1000:.1f} ms → {after * 1000:.1f} ms, "
                f"memory +{grown:.0f} MB"
            )
        views = [each for each in seat.app.conversation.children if each.id != "earlier"]
        assert len(views) <= WIDGET_LIMIT + EXTRA_WIDGETS
        assert len(seat.app.conversation.blocks) == 1 + 3 * TURNS
        assert after < 5 * at_start + 0.05
        assert grown < 200


async def test_earlier_turns_are_loaded_when_the_person_scrolls_to_the_top(desk: Desk):
    async with desk.opened(size=(100, 30)) as seat:
        seat.app.conversation.show_all([block for number in range(50) for block in turn(number)])
        await seat.pilot.pause()
        assert "110 earlier entries" in seat.text
        assert "question 30\n" not in seat.text
        seat.app.conversation.scroll_home(animate=False)
        await seat.until(lambda: "90 earlier entries" in seat.text)
        assert "question 30\n" in seat.text
        assert seat.app.conversation.scroll_y > 0, "what was at the top stays in view"


async def test_the_scroll_position_is_kept_while_text_arrives(desk: Desk):
    async with desk.opened(size=(80, 24)) as seat:
        seat.app.conversation.show_all([block for number in range(5) for block in turn(number)])
        await seat.pilot.pause()
        await seat.pilot.press("pageup")
        await seat.pilot.pause()
        place = seat.app.conversation.scroll_y
        seat.app.conversation.add_text("more " * 400)
        seat.app.conversation.flush()
        await seat.pilot.pause()
        assert seat.app.conversation.scroll_y == place
        seat.app.conversation.scroll_end(animate=False)
        await seat.pilot.pause()
        seat.app.conversation.add_text("and more " * 400)
        seat.app.conversation.flush()
        await seat.pilot.pause()
        assert seat.app.conversation.scroll_y == seat.app.conversation.max_scroll_y
