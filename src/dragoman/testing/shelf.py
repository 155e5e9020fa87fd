"""The resources, templates and prompts of an in-memory server: their lists, their contents, and completion
from a list of known values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

Json = dict[str, Any]
Fill = Callable[[Mapping[str, str]], str]
KEEPS: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


class NotThere(Exception):
    """No such resource or prompt."""


class _Offer(Struct, frozen=True):
    definition: Json
    fill: Fill
    values: Mapping[str, Iterable[str]] = {}
    """What the gaps or arguments may be, as far as that is known."""


class Shelf:
    def __init__(self) -> None:
        self._resources: dict[str, _Offer] = {}
        self._templates: dict[str, _Offer] = {}
        self._prompts: dict[str, _Offer] = {}

    def add_resource(self, uri: str, text: str, **definition: Any) -> None:
        self._resources[uri] = _Offer({"uri": uri, "name": uri, **definition}, lambda _: text)

    def add_template(
        self, uri_template: str, fill: Fill, values: Mapping[str, Iterable[str]], **definition: Any
    ) -> None:
        said = {"uriTemplate": uri_template, "name": uri_template, **definition}
        self._templates[uri_template] = _Offer(said, fill, values)

    def add_prompt(
        self,
        name: str,
        fill: Fill,
        arguments: Iterable[Json],
        values: Mapping[str, Iterable[str]],
        **more: Any,
    ) -> None:
        self._prompts[name] = _Offer({"name": name, "arguments": list(arguments), **more}, fill, values)

    def capabilities(self) -> Json:
        resources: Json = {"resources": {}} if self._resources or self._templates else {}
        prompts: Json = {"prompts": {}} if self._prompts else {}
        return {**resources, **prompts, **({"completions": {}} if resources or prompts else {})}

    def answer(self, method: str, params: Json) -> Json | None:
        """The result, None if this is no question for a shelf. `NotThere` if there is no such thing."""
        match method:
            case "resources/list":
                return {**KEEPS, "resources": [offer.definition for offer in self._resources.values()]}
            case "resources/templates/list":
                return {
                    **KEEPS,
                    "resourceTemplates": [offer.definition for offer in self._templates.values()],
                }
            case "resources/read":
                return {**KEEPS, "contents": [self._read(params["uri"])]}
            case "prompts/list":
                return {**KEEPS, "prompts": [offer.definition for offer in self._prompts.values()]}
            case "prompts/get":
                text = _known(self._prompts, params["name"]).fill(params.get("arguments") or {})
                message = {"role": "user", "content": {"type": "text", "text": text}}
                return {"resultType": "complete", "messages": [message]}
            case "completion/complete":
                return {"resultType": "complete", "completion": self._completion(params)}
            case _:
                return None

    def _read(self, uri: str) -> Json:
        offer = self._resources.get(uri)
        if offer is not None:
            return {"uri": uri, "mimeType": "text/plain", "text": offer.fill({})}
        for template, offer in self._templates.items():
            gaps = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(template))
            if found := re.fullmatch(gaps, uri):
                filled = {name: unquote(value) for name, value in found.groupdict().items()}
                return {"uri": uri, "mimeType": "text/plain", "text": offer.fill(filled)}
        raise NotThere(f"no resource {uri}")

    def _completion(self, params: Json) -> Json:
        ref, argument = params["ref"], params["argument"]
        offers, key = (self._templates, "uri") if ref["type"] == "ref/resource" else (self._prompts, "name")
        values = _known(offers, ref[key]).values.get(argument["name"], ())
        fitting = [value for value in values if value.lower().startswith(argument["value"].lower())]
        return {"values": fitting[:100], "total": len(fitting), "hasMore": len(fitting) > 100}


def _known(offers: Mapping[str, _Offer], name: str) -> _Offer:
    if name not in offers:
        raise NotThere(f"no {name}")
    return offers[name]
