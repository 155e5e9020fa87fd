"""Web servers for tests: aiohttp, in this process, on loopback ports chosen by the kernel.

`streamable`, `http_sse` and `websocket` are correct; `answers` has faulty behaviours that can be added to any
of them by method. Received requests are recorded in `asks`, and errors of the client in `faults`.
"""

from tests.servers.web.http_sse import HttpSse, http_sse
from tests.servers.web.site import Answer, Ask, Site, site
from tests.servers.web.streamable import Streamable, streamable
from tests.servers.web.tools import Ledger
from tests.servers.web.websocket import WebSocketSite, websocket

__all__ = [
    "Answer",
    "Ask",
    "HttpSse",
    "Ledger",
    "Site",
    "Streamable",
    "WebSocketSite",
    "http_sse",
    "site",
    "streamable",
    "websocket",
]
