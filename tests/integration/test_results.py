"""Results of a real server, on their way to a model."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dragoman import Host
from dragoman.adapters.answering import parts_of, text_of
from dragoman.calls.outcome import CallOutcome
from dragoman.calls.reading_tools import result_tool
from dragoman.content.store import ResultStore
from tests.servers import stdio_server

TEXT = '"content":[{"type":"text","text":"'

pytestmark = [pytest.mark.requirement("CAL-7"), pytest.mark.slow]


class Far:
    def __init__(self, host: Host) -> None:
        self.host = host
        self.read = result_tool(ResultStore()).run

    async def result(self, inside: str, **options: Any) -> CallOutcome:
        asked = {"before": inside, "piece": "", "count": 0, "after": ""}
        return await self.host.call("mcp__far__act", asked, **options)

    async def text(self, count: int, **options: Any) -> CallOutcome:
        asked = {"before": TEXT, "piece": 'A line of \\"text\\".\\n', "count": count, "after": '"}]'}
        return await self.host.call("mcp__far__act", asked, **options)


@pytest.fixture
async def far() -> AsyncIterator[Far]:
    async with Host(
        {"far": stdio_server("answers_at_length.py")}, permission_mode="bypassPermissions"
    ) as host:
        await host.ready(timeout=20)
        yield Far(host)


async def test_a_model_continues_reading_a_saved_result(far: Far):
    outcome = await far.text(20_000)
    (saved,) = outcome.saved
    assert saved.handle in text_of(outcome)
    lines = str(await far.read({"handle": saved.handle, "lines": "19999-"}))
    assert lines.count('A line of "text".') == 2
    found = str(await far.read({"handle": saved.handle, "grep": "TEXT"}))
    assert found.startswith('1: A line of "text".\n2: ')


async def test_a_model_searches_large_json_and_reads_at_the_position(far: Far):
    rows = json.dumps([{"id": number, "name": f"n{number}"} for number in range(30_000)])
    outcome = await far.result(f'"content":[],"structuredContent":{{"rows":{rows}}}')
    (saved,) = outcome.saved
    assert "[30000 × {id: integer, name: string}]" in outcome.text
    assert outcome.structured["rows"][7] == {"id": 7, "name": "n7"}
    found = str(await far.read({"handle": saved.handle, "grep": '"n29999"'}))
    offset = saved.path.read_bytes().index(b'"n29999"')
    assert found.startswith(f"1, offset={offset}: …")
    assert str(await far.read({"handle": saved.handle, "offset": offset})).startswith('"n29999"}]}\n')


async def test_a_person_gets_the_complete_result(far: Far):
    outcome = await far.text(20_000, raw=True)

    assert outcome.text.count("\n") == 20_000
    assert outcome.saved == ()


async def test_structured_content_reaches_a_model_once(far: Far):
    structured = '"structuredContent":{"a":1,"b":2}'
    said = await far.result(TEXT + '{\\"a\\": 1, \\"b\\": 2}"}],' + structured)
    unsaid = await far.result(TEXT + 'done"}],' + structured)

    assert parts_of(said) == ['{"a": 1, "b": 2}']
    assert parts_of(unsaid) == ["done", '{"a":1,"b":2}']
    assert said.structured == unsaid.structured == {"a": 1, "b": 2}


@pytest.mark.requirement("CAL-6")
async def test_an_error_of_a_tool_is_an_outcome_with_its_message(far: Far):
    outcome = await far.result(
        '"isError":true,"content":[{"type":"text","text":"no such file"},{"type":"odd"}]'
    )

    assert outcome.is_error
    assert parts_of(outcome) == ["no such file", "[content of unknown type 'odd']"]


async def test_the_metadata_of_a_result_is_passed_on(far: Far):
    outcome = await far.result('"content":[],"_meta":{"a/b":[1]}')

    assert outcome.meta == {"a/b": [1]}
