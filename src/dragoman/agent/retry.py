"""Decides whether and when a failed request to a model is repeated. Pure.

The retries of the client libraries are disabled, because these retries are not shown and wait as long as a
provider demands.
"""

from __future__ import annotations

from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelTimeoutError,
)
from pydantic_ai.messages import ModelResponse, ToolCallPart

from dragoman.cleaning import one_line

ATTEMPT_LIMIT: Final = 6
FIRST_WAIT_SECONDS: Final = 1.0
LONGEST_WAIT_SECONDS: Final = 60.0

Action = Literal["retry", "compact", "fail"]

_TRANSIENT: Final = (
    ModelRateLimitError,
    ModelOverloadedError,
    ModelServerError,
    ModelConnectionError,
    ModelTimeoutError,
)


CUT_OFF: Final = "the answer was cut off"
WRONG_ENDPOINT_HINT: Final = (
    "Check the address if it was given with --base-url (OpenAI-compatible endpoints end with /v1), and that "
    "the provider in the model's name matches its API format."
)
_UNREACHABLE_HINT: Final = (
    "Check the network, the proxy variables, and the address if it was given with --base-url."
)


def is_cut_off(response: ModelResponse) -> bool:
    """Whether the stream ended before the model's answer, without an error of the connection. In OpenAI's
    chat format this is known only of a tool call without arguments, because some endpoints never give a
    reason for the end; other incomplete calls have invalid JSON arguments."""
    if response.finish_reason == "length":
        return False
    if response.provider_name == "anthropic" and response.finish_reason is None:
        return True
    return response.state == "incomplete" or _ends_with_a_name(response)


def _ends_with_a_name(response: ModelResponse) -> bool:
    """Whether the last part is a tool call of which only the name has arrived. The library makes up a
    `finish_reason` for such a stream; what the endpoint sent is in `provider_details`."""
    last = response.parts[-1] if response.parts else None
    return (
        isinstance(last, ToolCallPart)
        and not last.args
        and response.provider_name == "openai"
        and "finish_reason" not in (response.provider_details or {})
    )


def provider_at(url: str | None) -> str:
    """The provider with scheme, host and port; the rest of a URL may contain keys."""
    if not url:
        return "the provider"
    parts = urlsplit(url)
    return one_line(f"the provider at {parts.scheme}://{parts.netloc.rpartition('@')[2]}", 200)


class Reaction(Struct, frozen=True):
    action: Action
    reason: str
    """A short reason for the person."""
    wait_seconds: float = 0.0
    hint: str | None = None


def react(error: ModelAPIError, attempt: int, url: str | None = None) -> Reaction:
    """The reaction to a failed request. `attempt`: the number of requests so far."""
    reason = reason_of(error, url)
    if isinstance(error, ModelContextWindowExceededError):
        return Reaction(
            "compact", reason, hint="Begin a new conversation, or use a model with a larger context."
        )
    if isinstance(error, ModelAuthenticationError):
        return Reaction("fail", reason, hint="Check the API key in your environment.")
    if isinstance(error, ModelQuotaExceededError):
        return Reaction("fail", reason, hint="Check the plan and the billing of your account.")
    if isinstance(error, ModelNotFoundError):
        return Reaction("fail", reason, hint="Choose another model with --model provider:name.")
    if not isinstance(error, _TRANSIENT) or attempt >= ATTEMPT_LIMIT:
        is_unreachable = isinstance(error, ModelConnectionError | ModelTimeoutError)
        return Reaction("fail", reason, hint=_UNREACHABLE_HINT if is_unreachable else None)
    asked = error.retry_after
    if asked is not None and asked > LONGEST_WAIT_SECONDS:
        return Reaction("fail", f"{reason}; it asks to wait {asked:.0f} s", hint="Try again later.")
    wait = min(FIRST_WAIT_SECONDS * 2 ** (attempt - 1), LONGEST_WAIT_SECONDS)
    return Reaction("retry", reason, max(wait, asked or 0.0))


def reason_of(error: ModelAPIError, url: str | None = None) -> str:
    """The reason of the failure, without the text of the provider, which may be long."""
    provider = provider_at(url)
    match error:
        case ModelContextWindowExceededError():
            return "the conversation is longer than the model can read"
        case ModelAuthenticationError():
            return "the provider refuses the API key"
        case ModelQuotaExceededError():
            return "the account's quota is used up"
        case ModelNotFoundError():
            return f"the provider has no model {error.model_name!r}"
        case ModelRateLimitError():
            return "too many requests"
        case ModelOverloadedError():
            return "the provider is overloaded"
        case ModelServerError():
            return "the provider had an error"
        case ModelTimeoutError():
            return f"{provider} did not answer in time"
        case ModelConnectionError(message=message) if message == CUT_OFF:
            return CUT_OFF
        case ModelConnectionError():
            return f"the connection to {provider} failed"
        case ModelHTTPError():
            return f"the provider answered with HTTP {error.status_code}"
        case _:
            return "the provider refused the request"
