"""The authorization server and the person of one test."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.interop.oauth.parts import AuthorizationServer, Browser, Person

Part = Callable[..., dict[str, Any]]


@pytest.fixture
async def authorization(part: Part) -> AsyncIterator[AuthorizationServer]:
    async with AuthorizationServer(part) as server:
        yield server


@pytest.fixture
async def person() -> AsyncIterator[Person]:
    async with Browser() as browser:
        yield Person(browser)
