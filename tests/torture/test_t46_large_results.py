"""T46: Large and unusual results use bounded resources and are shortened for a model; the full result is
on disk. The memory of the large ones is measured in a separate process (this module, run as a
program) that contains only the host and the result."""

import asyncio
import gc
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import MalformedReply
from tests.servers import stdio_server
from tests.torture.bystander_host import MEGABYTE, Pulse, at_once, resident_bytes

pytestmark = pytest.mark.requirement("CAL-7")

ENTRY = stdio_server("answers_at_length.py")
LIMIT_BYTES = 128 * MEGABYTE
ALLOWANCE_BYTES = 64 * MEGABYTE
SHOWN_LIMIT = 101_000
ROOT = Path(__file__).parents[2]


def repeated(before: str, piece: str, count: int, after: str) -> dict[str, Any]:
    return {"before": before, "piece": piece, "count": count, "after": after}


LINE = 'A line of text, "quoted", with a tab\t, an é, a 😀 and a \\ in it.\n'
TEXT = '"content":[{"type":"text","text":"'
HEAVY = {
    "100 MB of text": repeated(TEXT, "plain words, ", 7_700_000, '"}]'),
    "100 MB of escapes": repeated(TEXT, "\\n", 50_000_000, '"}]'),
    "100 MB of lines": repeated(TEXT, json.dumps(LINE)[1:-1], 1_150_000, '"}]'),
    "100 MB of signs": repeated(TEXT, "\\ud83d\\ude00", 8_300_000, '"}]'),
    "8 MB of numbers": repeated('"content":[],"structuredContent":[1', ",1", 4_000_000, "]"),
    "32 MB of brackets": repeated('"content":[],"structuredContent":[1', ",[]", 10_600_000, "]"),
    "a million blocks": repeated('"content":[1', ',{"type":"text","text":"abc"}', 10**6, "]"),
    "millions of nothings": repeated('"content":[1', ",1", 10_000_000, "]"),
    "50 MB of audio": repeated('"content":[{"type":"audio","data":"', "AAAA", 12_500_000, '"}]'),
    "30 MB of an unknown type": repeated('"content":[{"type":"hologram","x":[0', ",1", 15_000_000, "]}]"),
}


def text_of(asked: dict[str, Any]) -> bytes:
    """The text that a server derives from it."""
    return json.loads(f'"{asked["piece"]}"').encode() * asked["count"]


@pytest.mark.slow
@pytest.mark.parametrize("name", HEAVY)
def test_t46_a_large_result_uses_little_more_memory_than_its_message_and_releases_it(home: Path, name: str):
    weighed = measure(HEAVY[name])

    assert weighed["growth_bytes"] < LIMIT_BYTES + ALLOWANCE_BYTES
    assert weighed["left_bytes"] < ALLOWANCE_BYTES / 2
    assert weighed["work_seconds"] < weighed["blocked_seconds"], "the loop was kept busy"
    assert weighed["gap_seconds"] < 2.5, "the loop stood still"
    assert weighed["shown_characters"] < SHOWN_LIMIT
    if name.startswith("100 MB"):
        # One copy of the message, and none of its text.
        assert weighed["growth_bytes"] < weighed["message_bytes"] + ALLOWANCE_BYTES / 2
        assert weighed["saved"] == [["text", hashlib.sha256(text_of(HEAVY[name])).hexdigest()]]


def measure(asked: dict[str, Any]) -> dict[str, Any]:
    command = [sys.executable, "-m", __name__, json.dumps(asked)]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, timeout=120, check=True)
    return json.loads(done.stdout)


async def weighed(asked: dict[str, Any]) -> dict[str, Any]:
    settings = {"DRAGOMAN_MESSAGE_LIMIT_BYTES": LIMIT_BYTES}
    async with Host({"far": ENTRY}, permission_mode="bypassPermissions", settings=settings) as host:
        await host.ready(timeout=20)
        warm = {**asked, "count": 40_000}
        await host.call("mcp__far__act", warm, timeout_seconds=60)
        gc.collect()
        pulse = Pulse()
        beating = asyncio.create_task(pulse.beat())
        outcome = await host.call("mcp__far__act", asked, timeout_seconds=100)
        await asyncio.sleep(0.05)
        beating.cancel()
        found = {
            "growth_bytes": pulse.growth_bytes,
            "work_seconds": pulse.longest_work_seconds,
            "gap_seconds": pulse.longest_gap_seconds,
            "blocked_seconds": pulse.blocked_seconds,
            "message_bytes": len(asked["piece"].encode()) * asked["count"],
            "shown_characters": len(outcome.text),
            "saved": [[saved.kind, digest_of(saved.path)] for saved in outcome.saved],
        }
        del outcome
        gc.collect()
        return {**found, "left_bytes": resident_bytes() - pulse.first_bytes}


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# In the bystander_host, with a bystander that must not be affected.


async def test_t46_fifty_megabytes_are_saved_in_full_and_shown_in_part(bystander_host, era):
    async with bystander_host(stdio_server("answers_at_length.py", protocol=era)) as a:
        asked = repeated(TEXT, "0123456789", 5_000_000, '"}]')
        async with at_once(20):
            outcome = await a.outcome("act", seconds=30, **asked)
        (saved,) = outcome.saved
        assert saved.size_bytes == 50_000_000
        assert len(outcome.text) < SHOWN_LIMIT
        assert saved.handle in outcome.text
        assert a.pulse.growth_bytes < 50 * MEGABYTE + ALLOWANCE_BYTES
        await a.serves_still()


@pytest.mark.parametrize("count", [10_000, 50_000])
async def test_t46_very_many_blocks_are_bounded(bystander_host, count):
    async with bystander_host(ENTRY) as a:
        piece = ',{"type":"text","text":"abc"},{"type":"hologram"},{"type":"resource_link","uri":"x:y"}'
        outcome = await a.outcome("act", **repeated('"content":[1', piece, count, "]"))
        assert len(outcome.content) < 200
        assert len(outcome.text) < SHOWN_LIMIT
        assert "unknown type 'hologram'" in outcome.text
        await a.serves_still()


@pytest.mark.requirement("CAL-6")
async def test_t46_an_error_with_very_many_blocks_is_a_readable_outcome(bystander_host):
    async with bystander_host(ENTRY) as a:
        piece = ',{"type":"text","text":"it went wrong"}'
        outcome = await a.outcome("act", **repeated('"isError":true,"content":[1', piece, 20_000, "]"))
        assert outcome.is_error
        assert "it went wrong" in outcome.text
        assert len(outcome.text) < SHOWN_LIMIT


@pytest.mark.parametrize(
    ("before", "words"),
    [
        ('"content":[{"type":"hologram","text":"', "unknown type 'hologram'"),
        ('"content":[{"type":7,"text":"', "unknown type"),
        ('"content":[{"type":"image","mimeType":"image/png","data":"', "image, declared as image/png"),
        ('"content":[{"type":"resource","resource":{"uri":"../../x","blob":"', "resource ../../x"),
        ('"content":[{"type":"resource","resource":{"text":"', "without an address"),
    ],
)
async def test_t46_large_blocks_of_every_kind_give_a_bounded_outcome(bystander_host, before, words):
    async with bystander_host(ENTRY) as a:
        after = '"}}]' if "resource" in before else '"}]'
        outcome = await a.outcome("act", **repeated(before, "AAAA", 300_000, after))
        assert words in outcome.text
        assert len(outcome.text) < SHOWN_LIMIT
        await a.serves_still()


@pytest.mark.parametrize(
    "inside",
    [
        '"content":{}',
        '"content":[],"resultType":[]',
        '"content":"text"',
    ],
)
async def test_t46_an_invalid_result_of_any_size_fails_its_call_only(bystander_host, inside):
    async with bystander_host(ENTRY) as a:
        for count in (1000, 200_000):
            with pytest.raises(MalformedReply, match="hostile"):
                await a.outcome("act", **repeated(inside + ',"padding":"', "x", count, '"'))
        await a.serves_still()


async def test_t46_very_deep_nesting_is_a_failed_call_or_a_saved_file(bystander_host):
    async with bystander_host(ENTRY) as a:
        for before, after in (('"content":[],"structuredContent":', ""), ('"content":', "")):
            with pytest.raises(MalformedReply, match="hostile"):
                await a.outcome("act", **repeated(before + "[" * 10, "[", 500_000, after))
        await a.serves_still()


async def test_t46_a_text_that_consists_of_escapes_is_saved_correctly(bystander_host):
    async with bystander_host(ENTRY) as a:
        async with at_once(20):
            outcome = await a.outcome("act", **repeated(TEXT, '\\ud83d\\ude00x\\\\\\"', 400_000, '"}]'))
        (saved,) = outcome.saved
        assert saved.path.read_text() == '😀x\\"' * 400_000
        await a.serves_still()


async def test_t46_a_lone_surrogate_is_replaced_and_very_many_fail_their_call(bystander_host):
    async with bystander_host(ENTRY) as a:
        assert (await a.outcome("act", **repeated(TEXT, "\\ud800x", 1, '"}]'))).text == "\ufffdx"
        with pytest.raises(MalformedReply, match="hostile"):
            await a.outcome("act", **repeated(TEXT, "\\ud800x", 400_000, '"}]'))
        await a.serves_still()


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(weighed(json.loads(sys.argv[1])))))
    sys.stdout.flush()
    os._exit(0)
