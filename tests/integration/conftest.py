"""`connect` opens a host with one workshop server: every transport, every revision, most of their
combinations.
"""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import Host
from dragoman.protocol import LEGACY_REVISIONS, REVISIONS
from tests.integration.embedding import Embedding
from tests.integration.workshop import fastmcp_server, our_server, sdk_server, workshop
from tests.servers.web import HttpSse, Site, Streamable, WebSocketSite

SERVER = "shop"
PINS = ("auto", "legacy", *REVISIONS)
SITES = ("http", "http-json", "sse", "ws")


@dataclass(frozen=True)
class Connect:
    kind: str
    pin: str
    """How the entry is pinned; for our in-process server, which has no entry, what it is able to speak."""

    @property
    def speaks(self) -> tuple[str, ...]:
        """What a server made for this is able to speak."""
        if self.kind == "sse":
            return LEGACY_REVISIONS
        return {"auto": REVISIONS, "legacy": LEGACY_REVISIONS}.get(self.pin, (self.pin,))

    @property
    def revision(self) -> str:
        """What is to be spoken."""
        return self.speaks[0]

    @property
    def is_process(self) -> bool:
        return "stdio" in self.kind

    @asynccontextmanager
    async def made(self, **options: Any) -> AsyncIterator[Host]:
        """A host that is not open yet; its server is there."""
        options.setdefault("permission_mode", "bypassPermissions")
        if self.kind in SITES:
            async with self._site() as site:
                yield Host({SERVER: {"type": self._type, "url": site.url, "protocol": self.pin}}, **options)
        elif self.kind == "sdk-control":
            entry = {"type": "sdk", "protocol": self.pin}
            yield Host({SERVER: entry}, control=Embedding(**{SERVER: our_server(self.speaks)}), **options)
        else:
            yield Host({SERVER: self._server()}, **options)

    @asynccontextmanager
    async def __call__(self, **options: Any) -> AsyncIterator[Host]:
        """A host whose server is ready."""
        async with self.made(**options) as host, host:
            await host.ready(timeout=30)
            yield host

    @property
    def _type(self) -> str:
        return self.kind.partition("-")[0]

    def _site(self) -> Site:
        site: Streamable | HttpSse | WebSocketSite
        match self.kind:
            case "sse":
                site = HttpSse(revisions=self.speaks)
            case "ws":
                site = WebSocketSite(revisions=self.speaks)
            case _:
                site = Streamable(
                    revisions=self.speaks, replies="json" if self.kind == "http-json" else "sse"
                )
        site.in_memory = our_server(self.speaks)
        return site

    def _server(self) -> object:
        match self.kind:
            case "ours":
                return our_server(self.speaks)
            case "ours-stdio":
                return workshop("ours", protocol=self.pin)
            case "sdk-stdio":
                return workshop("sdk", protocol=self.pin)
            case "sdk":
                return sdk_server()
            case _:
                return fastmcp_server()


FEW_PINS = ("auto", "legacy", LEGACY_REVISIONS[-1])
"""Where revisions make no difference beyond what other transports show."""


def _cases() -> Iterator[Any]:
    # Processes take their time to start: --quick meets ours once.
    for kind, pins in (("ours", PINS), ("ours-stdio", FEW_PINS)):
        for pin in pins:
            yield _case(kind, pin, slow=kind != "ours" and pin != "auto")
    for kind in ("sdk", "fastmcp"):
        yield _case(kind, "auto")
    for pin in PINS:
        if pin != LEGACY_REVISIONS[-1]:  # it has no Streamable HTTP
            yield _case("http", pin, slow=pin != "auto")
    for pin in FEW_PINS[:2]:
        yield _case("http-json", pin, slow=True)
        yield _case("ws", pin, slow=pin != "auto")
        yield _case("sdk-control", pin, slow=pin != "auto")
    yield _case("sse", "auto")
    yield _case("sse", LEGACY_REVISIONS[0], slow=True)


def _case(kind: str, pin: str, *, slow: bool = False) -> Any:
    return pytest.param(Connect(kind, pin), id=f"{kind}-{pin}", marks=[pytest.mark.slow] if slow else [])


_turns = itertools.cycle(FEW_PINS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A process of the SDK takes a second of processor time to start: each test meets it with one pin."""
    if "connect" in metafunc.fixturenames:
        metafunc.parametrize("connect", [*_cases(), _case("sdk-stdio", next(_turns), slow=True)])
