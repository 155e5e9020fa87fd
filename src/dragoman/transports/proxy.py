"""An organisation's connector, reached through the organisation's proxy (`claudeai-proxy`).

I own: what sets it apart from plain Streamable HTTP: the bearer of the person who is signed in, renewed once
after a 401, and a header that names the host's own session. Where bearers come from is a seam.
"""

from __future__ import annotations

import uuid

from msgspec import structs

from dragoman.transports.http import Credentials, HttpTransport
from dragoman.transports.web import Network

SESSION_HEADER = "X-Mcp-Client-Session-Id"


class ProxiedTransport(HttpTransport):
    def __init__(
        self,
        server: str,
        network: Network,
        credentials: Credentials,
        *,
        limit_bytes: int,
        request_seconds: float,
    ) -> None:
        named = {**network.headers, SESSION_HEADER: str(uuid.uuid4())}
        super().__init__(
            server,
            structs.replace(network, headers=named),
            limit_bytes=limit_bytes,
            request_seconds=request_seconds,
            credentials=credentials,
        )
