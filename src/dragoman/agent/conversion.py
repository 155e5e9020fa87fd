"""Converts between the values of the model library and those of the host: tools, calls, results, usage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition

from dragoman.adapters.pydantic_ai import content_of
from dragoman.agent.events import Usage
from dragoman.calls.outcome import CallOutcome, outcome_of_error
from dragoman.catalog.tools import Tool
from dragoman.errors import InvalidArguments, PermissionRefused
from dragoman.interaction import ConversationTurn
from dragoman.surrogates import joined

PERSON_TEXT_KEY: Final = "said"
INTERRUPTED: Final = "The user interrupted this call before it was finished. It may have had effects."


def join_surrogates(message: ModelMessage) -> None:
    """Replaces surrogates in every text of the message; see `surrogates.joined`."""
    for part in message.parts:
        for name, value in vars(part).items():
            if (whole := _joined(value)) != value:
                setattr(part, name, whole)


def _joined(value: Any) -> Any:
    match value:
        case str():
            return joined(value)
        case dict():
            found = cast("dict[Any, Any]", value)
            return {_joined(key): _joined(each) for key, each in found.items()}
        case list():
            return [_joined(each) for each in cast("list[Any]", value)]
        case _:
            return value


def definitions(tools: Sequence[Tool]) -> list[ToolDefinition]:
    """The definitions, in the given order. Another order would invalidate the provider's cache."""
    return [
        ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.model_schema)
        )
        for tool in tools
    ]


def read_arguments(call: ToolCallPart) -> tuple[Mapping[str, Any], CallOutcome | None]:
    """The arguments that the model wrote, and an error outcome if they are not a JSON object."""
    args = call.args
    if isinstance(args, str) and args.strip():
        try:
            args = msgspec.json.decode(args)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return {}, _not_json(call, f"they are not JSON: {error}")
    if args is None or args == "":
        return {}, None
    if not isinstance(args, dict):
        return {}, _not_json(call, "they are not a JSON object")
    return cast("dict[str, Any]", args), None


def _not_json(call: ToolCallPart, problem: str) -> CallOutcome:
    return outcome_of_error("", call.tool_name, InvalidArguments("", call.tool_name, (problem,)))


def result_part(call: ToolCallPart, outcome: CallOutcome) -> ToolReturnPart:
    """The result for the model. Refusals and errors are marked."""
    kind = "success" if not outcome.is_error else "failed"
    if isinstance(outcome.error, PermissionRefused):
        kind = "denied"
    return ToolReturnPart(call.tool_name, content_of(outcome), call.tool_call_id, outcome=kind)


def interrupted(call: ToolCallPart) -> ToolReturnPart:
    """The result of a cancelled call. It is not a refusal, so that the model may try the call again."""
    return ToolReturnPart(call.tool_name, INTERRUPTED, call.tool_call_id, outcome="interrupted")


def request_of(texts: Sequence[str], person_texts: Sequence[str]) -> ModelRequest:
    """A message for the model. `person_texts`: the parts that the person wrote, stored as metadata and not
    sent; the rest is text of servers, files and hooks."""
    return ModelRequest([UserPromptPart(text) for text in texts], metadata={PERSON_TEXT_KEY: [*person_texts]})


def person_texts_in(message: ModelMessage) -> list[str]:
    """The parts of a message that the person wrote."""
    return recorded_texts_in(message) or []


def recorded_texts_in(message: ModelMessage) -> list[str] | None:
    """The parts of a message that the person wrote; None if the message has no such metadata."""
    recorded: Any = (message.metadata or {}).get(PERSON_TEXT_KEY)
    if not isinstance(recorded, list):
        return None
    return [text for text in cast("list[Any]", recorded) if isinstance(text, str)]


def turns_of(history: Sequence[ModelMessage]) -> list[ConversationTurn]:
    """The texts of the person and the model, for a classifier. Results of tools and texts of servers, files
    and hooks are left out: they may contain instructions of others."""
    turns: list[ConversationTurn] = []
    for message in history:
        turns += [ConversationTurn("user", text) for text in person_texts_in(message)]
        texts = map(_text_of_part, message.parts) if isinstance(message, ModelResponse) else ()
        if text := "\n".join(filter(None, texts)):
            turns.append(ConversationTurn("assistant", text))
    return turns


def _text_of_part(part: object) -> str:
    match part:
        case TextPart(content=text):
            return text
        case ToolCallPart():
            return f"[calls {part.tool_name} with {part.args}]"
        case _:
            return ""


def usage_of(response: ModelResponse) -> Usage:
    used = response.usage
    try:
        cost = float(response.cost().total_price)
    except (LookupError, AssertionError, ValueError):  # the price or the name of the model is not known
        cost = None
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cost_usd=cost,
    )
