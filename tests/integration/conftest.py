"""`connect` makes a host with one workshop server: every kind × every revision it can be made to speak."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import Host
from dragoman.protocol import LEGACY_REVISIONS, REVISIONS
from tests.integration.workshop import fastmcp_server, our_server, sdk_server, workshop

SERVER = "shop"
PINS = ("auto", "legacy", *REVISIONS)


@dataclass(frozen=True)
class Connect:
    kind: str
    pin: str
    """How the entry is pinned; for our in-process server, which has no entry, what it is able to speak."""

    @property
    def revision(self) -> str:
        """What is to be spoken."""
        return {"auto": REVISIONS[0], "legacy": LEGACY_REVISIONS[0]}.get(self.pin, self.pin)

    @property
    def is_process(self) -> bool:
        return "stdio" in self.kind

    def host(self, **options: Any) -> Host:
        options.setdefault("permission_mode", "bypassPermissions")
        return Host({SERVER: self._server()}, **options)

    @asynccontextmanager
    async def __call__(self, **options: Any) -> AsyncIterator[Host]:
        """A host whose server is ready."""
        async with self.host(**options) as host:
            await host.ready(timeout=30)
            yield host

    def _server(self) -> object:
        match self.kind:
            case "ours":
                speaks = {"auto": REVISIONS, "legacy": LEGACY_REVISIONS}.get(self.pin, (self.pin,))
                return our_server(speaks)
            case "ours-stdio":
                return workshop("ours", protocol=self.pin)
            case "sdk-stdio":
                return workshop("sdk", protocol=self.pin)
            case "sdk":
                return sdk_server()
            case _:
                return fastmcp_server()


def _cases() -> Iterator[Any]:
    for kind in ("ours", "ours-stdio", "sdk-stdio"):
        for pin in PINS:
            # Processes take their time to start, the SDK's above all: --quick meets ours once per era.
            slow = kind == "sdk-stdio" or (kind != "ours" and pin not in ("auto", "legacy"))
            yield pytest.param(
                Connect(kind, pin), id=f"{kind}-{pin}", marks=[pytest.mark.slow] if slow else []
            )
    for kind in ("sdk", "fastmcp"):
        yield pytest.param(Connect(kind, "auto"), id=f"{kind}-auto")


@pytest.fixture(params=_cases())
def connect(request: pytest.FixtureRequest) -> Connect:
    return request.param
