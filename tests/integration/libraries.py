"""A host with one library server, over several transports and in both eras."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from dragoman import Host
from tests.servers import stdio_server
from tests.servers.library import Library
from tests.servers.web import Streamable
from tests.servers.web.tools import notification

LEGACY, MODERN = "2025-11-25", "2026-07-28"


@dataclass(frozen=True)
class Way:
    kind: str
    revision: str

    @asynccontextmanager
    async def __call__(self, **options: Any) -> AsyncIterator[Host]:
        options.setdefault("permission_mode", "bypassPermissions")
        if self.kind == "http":
            async with self._site() as site:
                entry = {"type": "http", "url": site.url, "protocol": self.revision}
                async with Host({"lib": entry}, **options) as host:
                    yield await ready(host)
        else:
            entry = stdio_server("library.py", protocol=self.revision)
            server = entry if self.kind == "stdio" else Library(revisions=(self.revision,))
            async with Host({"lib": server}, **options) as host:
                yield await ready(host)

    def _site(self) -> Streamable:
        site = Streamable(revisions=(self.revision,))
        library: Any = Library(revisions=(self.revision,))
        site.in_memory = library
        if self.revision == MODERN:  # each request is a conversation of its own, so the site tells
            library.on_change = lambda method, params: site.push(notification(method, **params))
        return site


async def ready(host: Host) -> Host:
    view = (await host.ready(timeout=30))["lib"]
    assert (view.status, view.reason) == ("connected", None)
    return host


ways = pytest.mark.parametrize(
    "way",
    [
        pytest.param(Way(kind, revision), id=f"{kind}-{revision}")
        for kind in ("stdio", "http", "in-process")
        for revision in (MODERN, LEGACY)
    ],
)
