"""Converts results, definitions of tools, resources and prompts for clients of the gateway. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.prompts import Completion, Prompt
from dragoman.catalog.resources import Resource, ResourceTemplate
from dragoman.catalog.tools import ServerTool
from dragoman.cleaning import for_model, value_for_model
from dragoman.content.blocks import LargeBlock, UnknownBlock
from dragoman.content.result import Undecoded
from dragoman.errors import RemoteError
from dragoman.wire.codec import split_as
from dragoman.wire.messages import ABSENT
from dragoman.wire.server.service import Json, RequestError, Result


def result_of(outcome: CallOutcome, is_modern: bool) -> Result:
    if isinstance(outcome.error, RemoteError):
        error = outcome.error
        raise RequestError(error.remote_code, error.remote_message, error.remote_data)
    if outcome.forwarded is not None:
        return _forwarded(outcome.forwarded, is_modern)
    result: Json = {"content": [block_value(each) for each in outcome.content], "isError": outcome.is_error}
    structured = outcome.structured_content
    if outcome.has_structured:
        result["structuredContent"] = structured.raw if _is_plain(structured) else outcome.structured
    if outcome.meta:
        result["_meta"] = dict(outcome.meta)
    return result


def _is_plain(part: Any) -> bool:
    return isinstance(part, Undecoded) and not part.redact


def _forwarded(raw: Raw, is_modern: bool) -> Raw:
    """The result as received. In the modern era its kind is added, which servers of the legacy era do not
    send."""
    if not is_modern or _names_its_kind(raw):
        return raw
    body = bytes(raw).lstrip()[1:].lstrip()
    return Raw(b'{"resultType":"complete"' + (b"" if body[:1] == b"}" else b",") + body)


class _Kind(Struct, rename="camel"):
    result_type: Raw = ABSENT


def _names_its_kind(raw: Raw) -> bool:
    # A member or a text of this name may also be further inside.
    return b'"resultType"' in bytes(raw) and split_as(_Kind, raw).result_type is not ABSENT


def text_result(text: str, *, is_error: bool = False) -> Json:
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def block_value(block: Any) -> Any:
    if isinstance(block, UnknownBlock):
        return block.value
    if isinstance(block, LargeBlock):
        return block.raw
    return without_nulls(block)


def without_nulls(struct: Any) -> Any:
    """The members of a block or of a resource's contents, without those that are not there."""
    value: Json = msgspec.to_builtins(struct)
    if isinstance(value.get("resource"), dict):
        value["resource"] = {key: each for key, each in value["resource"].items() if each is not None}
    return {key: each for key, each in value.items() if each is not None}


# Lists.


def listed_tool(name: str, tool: ServerTool, fixed: Mapping[str, Any]) -> Json:
    """The definition as its server gave it, with the name that clients use, and with clean descriptions;
    tasks are not offered. `fixed`: arguments that clients do not see."""
    schema = _without_arguments(tool.input_schema, fixed) if fixed else tool.input_schema
    definition = {**tool.as_listed(), "inputSchema": schema}
    definition.pop("execution", None)
    if tool.output_schema is None:
        definition.pop("outputSchema", None)
    for key in ("inputSchema", "outputSchema", "annotations", "title"):
        if key in definition:
            definition[key] = _with_clean_labels(definition[key])
    if definition.get("description"):
        definition["description"] = tool.description
    return {**definition, "name": name}


_LABELS: Final = frozenset({"title", "description", "$comment"})
_DATA: Final = frozenset({"default", "enum", "const", "examples"})


def _with_clean_labels(part: Any) -> Any:
    """The definition without invisible characters in descriptive texts. Names and values are sent back as
    they are, so they stay; the same object if it is clean. What is nested too deeply for that describes any
    object."""
    try:
        return part if value_for_model(part) is part else _cleaned("title", part)
    except RecursionError:
        return {"type": "object"}


def _cleaned(key: str, part: Any) -> Any:
    if isinstance(part, str):
        return for_model(part) if key in _LABELS else part
    if isinstance(part, list):
        return [_cleaned(key, item) for item in cast("list[Any]", part)]
    if isinstance(part, dict):
        members = cast("dict[str, Any]", part)
        return {name: inner if name in _DATA else _cleaned(name, inner) for name, inner in members.items()}
    return part


def _without_arguments(schema: Mapping[str, Any], fixed: Mapping[str, Any]) -> Json:
    properties: Mapping[str, Any] = schema.get("properties", {})
    required: list[str] = schema.get("required", [])
    return {
        **schema,
        "properties": {name: each for name, each in properties.items() if name not in fixed},
        "required": [name for name in required if name not in fixed],
    }


def listed_prompt(name: str, prompt: Prompt) -> Json:
    arguments = [
        {
            "name": each.name,
            **({"title": each.title} if each.title else {}),
            **({"description": each.description} if each.description else {}),
            "required": each.required,
        }
        for each in prompt.arguments
    ]
    return _given(
        name=name,
        title=prompt.title,
        description=prompt.description,
        arguments=arguments,
        _meta=dict(prompt.meta),
    )


def listed_resource(thing: Resource | ResourceTemplate, **address: str) -> Json:
    return _given(
        **address,
        name=thing.name,
        title=thing.title,
        description=thing.description,
        mimeType=thing.mime_type,
        size=thing.size if isinstance(thing, Resource) else None,
        annotations=thing.annotations,
        _meta=thing.meta,
    )


def _given(**members: Any) -> Json:
    return {key: value for key, value in members.items() if value not in (None, "", {}, [])}


def uri_of(resource: Resource) -> str:
    return resource.uri


def template_of(template: ResourceTemplate) -> str:
    return template.uri_template


def completion_result(found: Completion) -> Json:
    more = {} if found.total is None else {"total": found.total}
    return {"completion": {"values": list(found.values), "hasMore": found.has_more, **more}}
