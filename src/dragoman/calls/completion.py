"""What may come next while a person types: `completion/complete`.

I own: asking only servers that complete, and taking a no for "nothing". Waiting for a pause in the typing
is the front end's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from dragoman.calls.asking import Asking
from dragoman.catalog.lists import offers
from dragoman.catalog.prompts import Completion, read_completion
from dragoman.errors import RemoteError
from dragoman.names import ServerName
from dragoman.protocol import LEGACY_REVISIONS

LIMIT_SECONDS: Final = 5.0
"""A person does not wait longer for a suggestion."""
UNANNOUNCED: Final = LEGACY_REVISIONS[-1]
"""In the oldest revision there was no capability for it."""
WITHOUT_CONTEXT: Final = ("2024-11-05", "2025-03-26")


async def complete(
    asking: Asking,
    server: ServerName,
    ref: Mapping[str, Any],
    argument: str,
    value: str,
    given: Mapping[str, str],
) -> Completion:
    revision = (await asking.session(server)).driver.revision
    announced = offers(asking.servers.capabilities_of(server), "completions")
    if not announced and revision != UNANNOUNCED:
        return Completion()
    params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
    if given and revision not in WITHOUT_CONTEXT:
        params["context"] = {"arguments": dict(given)}
    try:
        return await asking.ask(
            server, "completion/complete", params, _read, about=argument, timeout_seconds=LIMIT_SECONDS
        )
    except RemoteError:
        return Completion()  # the server has nothing to suggest, for whatever reason


def _read(raw: Raw) -> tuple[str, Completion]:
    return "complete", read_completion(raw)
