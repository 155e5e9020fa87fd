"""The zoo over the network: servers on aiohttp, in this process, on loopback ports chosen by the kernel.

`streamable`, `http_sse` and `websocket` behave; `answers` holds bad habits, one each, that can be put in
front of any of them by method. What clients sent is kept in `asks`, what they did wrong in `faults`.
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
