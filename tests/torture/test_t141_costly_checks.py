"""T141: results and arguments that are expensive to validate or to report need little time and memory."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.servers.web import streamable
from tests.servers.web.given_answers import replace_results
from tests.servers.web.streamable import Streamable
from tests.torture.bystander_host import MEGABYTE, at_once
from tests.torture.conftest import MODERN
from tests.torture.test_t103_very_many_schema_errors import Peak

WORK_UNITS = 300
"""How many times as long as a fixed piece of work a call may keep a processor busy; see `Pulse`."""
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
"""Where `format` and `contentMediaType` are checked."""
TEXT = "a" * 1_000_000
NUMBERS = "[" + "1," * 490_000 + "1]"
LONG = [10**4000 + number for number in range(200)]
LARGE = [2**70 + number for number in range(4_000)]


def again(schema: dict[str, Any], times: int) -> dict[str, Any]:
    return {"allOf": [schema] * times}


ATTACKS: dict[str, tuple[Any, Any]] = {
    "a text that is too long, again and again": (again({"maxLength": 5}, 500), TEXT),
    "a text that is not in a list": (again({"enum": ["x"]}, 500), TEXT),
    "a text that must not be": (again({"not": {"type": "string"}}, 500), TEXT),
    "a text that is no address": (again({"format": "email"}, 500), TEXT),
    "an address, again and again": (again({"format": "iri-reference"}, 5_000), "/" + TEXT),
    "a name in another script": (again({"format": "idn-hostname"}, 500), "ü" * 500_000),
    "JSON in a text": (again({"contentMediaType": "application/json"}, 100), NUMBERS),
    "steps of next to nothing": ({"items": again({"multipleOf": 1e-300}, 100)}, [1.7e200] * 1_500),
    "bounds of long numbers": ({"items": again({"minimum": 7, "multipleOf": 0.5}, 10)}, LONG),
    "differing large numbers": ({"uniqueItems": True}, LARGE),
    "differing objects with large numbers": ({"uniqueItems": True}, [{"id": number} for number in LARGE]),
    "differing negative numbers": ({"uniqueItems": True}, [-number for number in LARGE]),
    "differing long numbers": ({"uniqueItems": True}, LONG),
}


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_t141_an_expensive_result_is_validated_in_little_time(bystander_host, attack: str):
    async with _server(attack) as server, bystander_host({"url": server.url, "protocol": MODERN}) as a:
        peak, began = Peak(), time.process_time()
        async with at_once(10):
            outcome = await a.outcome("loose", raw=True)
        assert not outcome.is_error
        assert time.process_time() - began < WORK_UNITS * a.pulse.unit_seconds
        assert peak.growth_bytes() < 150 * MEGABYTE


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("attack", ATTACKS)
async def test_t141_expensive_arguments_are_validated_in_little_time(bystander_host, attack: str):
    async with _server(attack) as server, bystander_host({"url": server.url, "protocol": MODERN}) as a:
        peak, began = Peak(), time.process_time()
        async with at_once(10):
            await a.outcome("strict", value=ATTACKS[attack][1])
        assert time.process_time() - began < WORK_UNITS * a.pulse.unit_seconds
        assert peak.growth_bytes() < 150 * MEGABYTE


@asynccontextmanager
async def _server(attack: str) -> AsyncIterator[Streamable]:
    schema, value = ATTACKS[attack]
    judged = {"$schema": DRAFT_7, "type": "object", "properties": {"value": schema}}
    strict = {"name": "strict", "inputSchema": judged}
    loose = {"name": "loose", "inputSchema": {"type": "object"}, "outputSchema": judged}
    result = {"content": [{"type": "text", "text": "ran"}], "structuredContent": {"value": value}}
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(
            server,
            {
                "tools/list": lambda _: {"tools": [strict, loose]},
                "tools/call": lambda ask: result if ask["name"] == "loose" else {"content": []},
            },
        )
        yield server
