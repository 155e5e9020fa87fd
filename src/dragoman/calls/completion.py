"""`completion/complete`: values for an argument of a prompt or of a resource template, while a person types.

Only servers that offer completion are asked, and an error means that there are no values. Waiting for a pause
in the typing is left to the front end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw, structs

from dragoman.calls.requests import COMPLETE, COMPLETION, Requests
from dragoman.calls.sending import Sender
from dragoman.catalog.prompts import Completion, read_completion
from dragoman.errors import RemoteError
from dragoman.protocol import LEGACY_REVISIONS

LIMIT_SECONDS: Final = 5.0
"""How long a suggestion is waited for: a person who types does not wait longer."""
UNANNOUNCED: Final = LEGACY_REVISIONS[-1]
"""In the oldest revision there was no capability for it."""
WITHOUT_CONTEXT: Final = ("2024-11-05", "2025-03-26")


async def complete(
    requests: Requests,
    sender: Sender,
    subject: Mapping[str, str],
    argument: str,
    value: str,
    given: Mapping[str, str],
) -> Completion:
    """`subject`: `server` and either `name`, a prompt's, or `uri`, a resource template."""
    arguments: dict[str, Any] = {**subject, "argument": argument, "value": value}
    if given:
        arguments["given"] = dict(given)
    return await requests.make(COMPLETE, arguments, lambda asked: _complete(sender, asked), COMPLETION)


async def _complete(sender: Sender, asked: Mapping[str, Any]) -> Completion:
    server = sender.known(asked["server"])
    revision = (await sender.session(server)).driver.revision
    announced = server.offers("completions")
    if not announced and revision != UNANNOUNCED:
        return Completion()
    is_prompt = "name" in asked
    ref = (
        {"type": "ref/prompt", "name": asked["name"]}
        if is_prompt
        else {"type": "ref/resource", "uri": asked["uri"]}
    )
    argument = {"name": asked["argument"], "value": asked["value"]}
    params: dict[str, Any] = {"ref": ref, "argument": argument}
    if asked.get("given") and revision not in WITHOUT_CONTEXT:
        params["context"] = {"arguments": asked["given"]}
    redact = server.redactor
    try:
        found = await sender.send(
            server,
            "completion/complete",
            params,
            _read,
            about=asked["argument"],
            timeout_seconds=LIMIT_SECONDS,
        )
    except RemoteError:
        return Completion()  # the server has nothing to suggest, for whatever reason
    if not redact:
        return found
    # A value is sent back as it is, so one with a secret in it cannot be shown in part.
    return structs.replace(found, values=tuple(each for each in found.values if redact.text(each) == each))


def _read(raw: Raw) -> tuple[str, Completion]:
    return "complete", read_completion(raw)
