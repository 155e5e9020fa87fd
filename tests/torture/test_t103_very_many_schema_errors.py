"""T103: A schema with a validation error in every name of a large object copies that object only a few
times."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.errors import InvalidArguments
from tests.servers.web import streamable
from tests.servers.web.given_answers import replace_results
from tests.servers.web.streamable import Streamable
from tests.torture.bystander_host import MEGABYTE, at_once
from tests.torture.conftest import MODERN

NAMES = 3_000
LARGE = {f"name{number}": number for number in range(NAMES)}
SCHEMAS = {
    "names by a pattern": {"propertyNames": {"pattern": "^z"}},
    "names by a length": {"propertyNames": {"maxLength": 1}},
    "names inside a reference": {"$ref": "#/$defs/x", "$defs": {"x": {"propertyNames": {"const": "z"}}}},
    "names that cannot be": {"propertyNames": False},
    "names required": {"required": [f"r{number}" for number in range(NAMES)]},
    "names that need another": {"dependentRequired": {name: ["z"] for name in LARGE}},
    "names that bring a schema": {"dependentSchemas": {name: {"required": ["z"]} for name in LARGE}},
    "the same demand again and again": {"allOf": [{"minProperties": 10**6}] * 2_000},
}

CHECKED = {attack for attack in SCHEMAS if "propertyNames" in str(SCHEMAS[attack])}
"""Schemas cheap enough to be checked; the others are checked by the server only."""


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("attack", SCHEMAS)
async def test_four_results_with_thousands_of_validation_errors_use_little_memory(
    bystander_host, attack: str
):
    async with (
        _server(SCHEMAS[attack]) as server,
        bystander_host({"url": server.url, "protocol": MODERN}) as a,
    ):
        peak = Peak()
        async with at_once(5):
            outcomes = await asyncio.gather(*(a.outcome("loose") for _ in range(4)))
        assert [outcome.is_error for outcome in outcomes] == [False] * 4
        assert peak.growth_bytes() < 100 * MEGABYTE


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("attack", SCHEMAS)
async def test_arguments_with_thousands_of_validation_errors_use_little_memory(bystander_host, attack: str):
    async with (
        _server(SCHEMAS[attack]) as server,
        bystander_host({"url": server.url, "protocol": MODERN}) as a,
    ):
        peak = Peak()
        async with at_once(5):
            outcome = await a.outcome("bad", **LARGE)
        assert isinstance(outcome.error, InvalidArguments) == (attack in CHECKED)
        assert peak.growth_bytes() < 100 * MEGABYTE


async def test_a_few_validation_errors_are_reported_one_by_one(bystander_host):
    schema = SCHEMAS["names by a length"]
    async with _server(schema) as server, bystander_host({"url": server.url, "protocol": MODERN}) as a:
        outcome = await a.outcome("bad", aa=1, bb=2, c=3)
        assert isinstance(outcome.error, InvalidArguments)
        assert len(outcome.error.problems) == 2


@asynccontextmanager
async def _server(schema: dict) -> AsyncIterator[Streamable]:
    judged = {"type": "object", **schema}
    tool = {"name": "bad", "inputSchema": judged, "outputSchema": judged}
    loose = {"name": "loose", "inputSchema": {"type": "object"}, "outputSchema": judged}
    result = {"content": [{"type": "text", "text": "ran"}], "structuredContent": LARGE}
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(
            server, {"tools/list": lambda _: {"tools": [tool, loose]}, "tools/call": lambda _: result}
        )
        yield server


class Peak:
    """The maximum memory of this process since `Peak()`, as measured by the kernel."""

    def __init__(self) -> None:
        Path("/proc/self/clear_refs").write_text("5")
        self._before = self._most()

    def growth_bytes(self) -> int:
        return self._most() - self._before

    def _most(self) -> int:
        status = Path("/proc/self/status").read_text()
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        assert found is not None
        return int(found[1]) * 1024
