"""One request of a client, as its handler sees it: parameters, who sent it, progress, log messages, and
questions to the client.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from dragoman.protocol import INVALID_PARAMS, INVALID_REQUEST, LOG_LEVELS, MISSING_CLIENT_CAPABILITY
from dragoman.wire.codec import Unreadable, decode_as, encode_notification
from dragoman.wire.server.incoming import decode_params
from dragoman.wire.server.service import Client, InputRequired, Json, RequestError, RequestId

T = TypeVar("T")
Send = Callable[[bytes], None]
"""Takes one message for the client; it does not wait, and does not raise."""
Ask = Callable[[str, Mapping[str, Any] | None, Send], Awaitable[Json]]
"""Sends a request to the client, and waits for its reply (legacy era)."""


class _Input(Struct, rename="camel"):
    """The members of a request that is sent again after `input_required`."""

    input_responses: dict[str, Json] = {}
    request_state: str | None = None


class ClientRequest:
    def __init__(
        self,
        request_id: RequestId | None,
        method: str,
        params: Raw,
        client: Client,
        channel: tuple[Send, Ask],
        progress_token: RequestId | None = None,
    ) -> None:
        """`channel`: takes the messages about this request."""
        self.id = request_id
        """The request id; None: a notification, or an action of the connection itself."""
        self.method = method
        self.raw_params = params
        self.client = client
        self._channel = channel
        self._progress_token = progress_token
        self._last_progress: float | None = None
        self._questions = 0
        self._is_finished = False

    @property
    def wants_progress(self) -> bool:
        return self._progress_token is not None

    @property
    def params(self) -> Json:
        return self.decode(dict[str, Any])

    def decode(self, shape: type[T]) -> T:
        """The parameters; where they do not fit, the request is answered with an error."""
        return decode_params(shape, self.raw_params)

    def derive(self, method: str, params: Json) -> ClientRequest:
        """Another action on behalf of the same client."""
        return ClientRequest(None, method, Raw(msgspec.json.encode(params)), self.client, self._channel)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Sends a notification about this request; does nothing after it is answered or cancelled."""
        if not self._is_finished:
            self._channel[0](encode_notification(method, params))

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Reports progress if the client wants it; a value that does not increase is left out."""
        is_increase = self._last_progress is None or progress > self._last_progress
        if self._progress_token is None or not is_increase:
            return
        self._last_progress = progress
        given = {"total": total, "message": message}
        params: Json = {"progressToken": self._progress_token, "progress": progress}
        params.update({key: value for key, value in given.items() if value is not None})
        self.notify("notifications/progress", params)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Sends a log message if the client wants those of this level."""
        if reaches(level, self.client.log_level):
            name = {} if logger is None else {"logger": logger}
            self.notify("notifications/message", {"level": level, **name, "data": data})

    async def ask(self, method: str, params: Mapping[str, Any] | None = None) -> Json:
        """Asks the client for elicitation, sampling or roots; returns its answer.

        In the modern era, the first question without an answer ends the handler with `InputRequired`. The
        handler runs again from its beginning when the answer has come: the code before the question is
        repeated.
        """
        missing = missing_capability(self.client.capabilities, method, params or {})
        if missing is not None:
            raise RequestError(
                MISSING_CLIENT_CAPABILITY,
                f"the client has not declared what {method} requires",
                {"requiredCapabilities": missing},
                legacy_code=INVALID_REQUEST,
            )
        if self.client.era == "legacy":
            send, ask = self._channel
            return await ask(method, params, send)
        self._questions += 1
        key = str(self._questions)
        answers = self._answers()
        if key in answers:
            return answers[key]
        question: Json = {"method": method, **({} if params is None else {"params": params})}
        raise InputRequired({key: question}, msgspec.json.encode(answers).decode() if answers else None)

    def _answers(self) -> dict[str, Json]:
        """The answers of all rounds. The state contains those of earlier rounds; it comes from the client and
        is as untrusted as they are."""
        given = self.decode(_Input)
        try:
            earlier = decode_as(dict[str, Json], (given.request_state or "{}").encode())
        except Unreadable as problem:
            raise RequestError(INVALID_PARAMS, f"requestState: {problem.detail}") from None
        return {**earlier, **given.input_responses}

    def finish(self) -> None:
        """Called when the request is answered or cancelled."""
        self._is_finished = True


def reaches(level: str, threshold: str | None) -> bool:
    """Whether a log message is sent to a client that wants those from the threshold on."""
    return threshold is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(threshold)


def missing_capability(declared: Mapping[str, Any], method: str, params: Mapping[str, Any]) -> Json | None:
    """The capability that a client must declare for this question; None if it has declared it."""
    kind = method.partition("/")[0]
    own = declared.get(kind)
    if not isinstance(own, dict):
        return {kind: {}}
    match method:
        case "elicitation/create":
            needed = params.get("mode", "form")
            if needed == "form" and not own:
                return None  # an empty object declares forms only
        case "sampling/createMessage" if "tools" in params or "toolChoice" in params:
            needed = "tools"
        case _:
            return None
    return None if needed in own else {kind: {needed: {}}}
