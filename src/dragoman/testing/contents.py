"""The resources, templates and prompts of an in-memory server: their lists, their contents, and completion
from a list of known values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from dragoman.protocol import INVALID_PARAMS
from dragoman.wire.server.request import ClientRequest
from dragoman.wire.server.service import Handler, RequestError, ResourceNotFound

Json = dict[str, Any]
Fill = Callable[[Mapping[str, str]], str]
"""Returns the text for the values of variables or arguments."""


class _Resource(Struct):
    uri: str


class _Prompt(Struct):
    name: str
    arguments: dict[str, str] | None = None


class _Reference(Struct):
    type: str
    uri: str = ""
    name: str = ""


class _Argument(Struct):
    name: str
    value: str


class _Completion(Struct):
    ref: _Reference
    argument: _Argument


class _Offer(Struct, frozen=True):
    definition: Json
    fill: Fill
    values: Mapping[str, Iterable[str]] = {}
    """The completions of variables or arguments."""


class ServerContents:
    def __init__(self) -> None:
        self._resources: dict[str, _Offer] = {}
        self._templates: dict[str, _Offer] = {}
        self._prompts: dict[str, _Offer] = {}

    def add_resource(self, uri: str, text: str, **definition: Any) -> None:
        self._resources[uri] = _Offer({"uri": uri, "name": uri, **definition}, lambda _: text)

    def add_template(
        self, uri_template: str, fill: Fill, values: Mapping[str, Iterable[str]], **definition: Any
    ) -> None:
        described = {"uriTemplate": uri_template, "name": uri_template, **definition}
        self._templates[uri_template] = _Offer(described, fill, values)

    def add_prompt(
        self,
        name: str,
        fill: Fill,
        arguments: Iterable[Json],
        values: Mapping[str, Iterable[str]],
        **more: Any,
    ) -> None:
        self._prompts[name] = _Offer({"name": name, "arguments": list(arguments), **more}, fill, values)

    def handlers(self) -> dict[str, Handler]:
        """The handlers by method. There are none for a kind of which the server has nothing."""
        resources: dict[str, Handler] = {
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read_resource,
        }
        prompts: dict[str, Handler] = {"prompts/list": self._list_prompts, "prompts/get": self._get_prompt}
        found = {
            **(resources if self._resources or self._templates else {}),
            **(prompts if self._prompts else {}),
        }
        return {**found, "completion/complete": self._complete} if found else {}

    async def _list_resources(self, request: ClientRequest) -> Json:
        return {"resources": [offer.definition for offer in self._resources.values()]}

    async def _list_templates(self, request: ClientRequest) -> Json:
        return {"resourceTemplates": [offer.definition for offer in self._templates.values()]}

    async def _read_resource(self, request: ClientRequest) -> Json:
        return {"contents": [self._read(request.decode(_Resource).uri)]}

    async def _list_prompts(self, request: ClientRequest) -> Json:
        return {"prompts": [offer.definition for offer in self._prompts.values()]}

    async def _get_prompt(self, request: ClientRequest) -> Json:
        wanted = request.decode(_Prompt)
        text = _known(self._prompts, wanted.name).fill(wanted.arguments or {})
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    async def _complete(self, request: ClientRequest) -> Json:
        asked = request.decode(_Completion)
        is_template = asked.ref.type == "ref/resource"
        offer = (
            _known(self._templates, asked.ref.uri) if is_template else _known(self._prompts, asked.ref.name)
        )
        typed = asked.argument.value.lower()
        values = offer.values.get(asked.argument.name, ())
        matching = [value for value in values if value.lower().startswith(typed)]
        completion = {"values": matching[:100], "total": len(matching), "hasMore": len(matching) > 100}
        return {"completion": completion}

    def _read(self, uri: str) -> Json:
        offer = self._resources.get(uri)
        if offer is not None:
            return {"uri": uri, "mimeType": "text/plain", "text": offer.fill({})}
        for template, offer in self._templates.items():
            pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
            if found := re.fullmatch(pattern, uri):
                filled = {name: unquote(value) for name, value in found.groupdict().items()}
                return {"uri": uri, "mimeType": "text/plain", "text": offer.fill(filled)}
        raise ResourceNotFound(uri)


def _known(offers: Mapping[str, _Offer], name: str) -> _Offer:
    if name not in offers:
        raise RequestError(INVALID_PARAMS, f"no {name}")
    return offers[name]
