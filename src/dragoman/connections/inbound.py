"""What servers may ask of the host, and what they are answered.

I own: the table of requests a server can send in the legacy era. Only `ping` needs nobody; whatever
was not declared as a capability is refused as unknown.
"""

from __future__ import annotations

from dragoman.protocol import METHOD_NOT_FOUND
from dragoman.wire.codec import encode_error, encode_result
from dragoman.wire.messages import MessageId


def answer(request_id: MessageId, method: str) -> bytes:
    if method == "ping":
        return encode_result(request_id, {})
    return encode_error(request_id, METHOD_NOT_FOUND, f"this client does not offer {method[:200]}")
