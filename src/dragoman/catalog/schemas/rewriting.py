"""Rewrites the input schemas of tools for model APIs. Pure.

A server's schema is rewritten so that every API accepts it, with the same meaning as far as it can be
expressed; the rest is added to descriptions as sentences. Arguments are still validated with the server's own
schema. `keywords.py` handles single keywords, `merging.py` merges schemas. Any JSON is handled in bounded
time; the result has a bounded size and is valid JSON Schema 2020-12, and rewriting it again changes nothing.

The requirements of APIs. One tool that does not comply makes an API refuse the request with all its tools.
- Anthropic: `type: "object"` at the root and no `oneOf`, `anyOf`, `allOf` there; names of properties match
  `[a-zA-Z0-9_.-]{1,64}`; in places no `$ref` at all; valid under JSON Schema 2020-12.
- OpenAI: `type: "object"` at the root and no `oneOf`, `anyOf`, `allOf`, `enum`, `not` there; an array has
  `items`. (Strict mode is not used: it forbids optional parameters.)
- Gemini: a subset of OpenAPI 3. No `$ref`, `oneOf`, `allOf`, `const`, tuples; what is `required` is among the
  `properties`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from dragoman.catalog.schemas.fitness import OF_OBJECTS, finish, is_fit, types
from dragoman.catalog.schemas.keywords import GONE, VALUE_LIMIT, Json, pattern, read, size
from dragoman.catalog.schemas.merging import (
    add_conditional_properties,
    add_words,
    conjoin,
    describe_names,
    describe_options,
    either,
    unite,
)
from dragoman.catalog.schemas.references import References
from dragoman.cleaning import is_safe

SIZE_LIMIT_BYTES: Final = 64 * 1024
"""The largest schema that a model is given: one tool must not take the space of all others."""
COST_LIMITS: Final = (5000, 500, 50, 0)
"""The limits of schemas, names and values that one rewriting reads; parts beyond the limit become schemas
that admit anything. The smaller limits are for schemas that are still too large."""
DEPTH_LIMIT: Final = 24
RECURSION_LIMIT: Final = 2
"""How many levels of a recursive schema are expanded."""

_HEADERS: Final = frozenset({"$schema", "$id", "$comment"})


def for_models(schema: Mapping[str, Any]) -> Json:
    """The schema in a form that every model API accepts; the same object, if it already is acceptable."""
    whole = cast("Json", schema)
    root = whole
    if not _HEADERS.isdisjoint(root):
        root = {keyword: value for keyword, value in root.items() if keyword not in _HEADERS}
    if _is_small(root) and is_fit(root):  # in this order: measuring is always quick
        return root
    for cost in COST_LIMITS:
        root = _as_root(_Rewriting(whole, cost).rewrite())
        if _is_small(root):
            break
    return root


def _is_small(schema: Json) -> bool:
    try:
        return len(msgspec.json.encode(schema)) <= SIZE_LIMIT_BYTES
    except RecursionError:
        return False


# --- node by node ---


class _Rewriting:
    def __init__(self, root: Json, cost_limit: int) -> None:
        self._root = root
        self._references = References(root)
        self._left = cost_limit
        self._inside: list[int] = []
        """The enclosing schemas, by identity: the targets of the references that led here."""

    def rewrite(self) -> Json:
        return self._node(self._root, DEPTH_LIMIT) or {}

    def _node(self, schema: Any, depth: int) -> Json | None:
        """The schema rewritten; None if nothing fits it."""
        if schema is False:
            return None
        whole, conditional = self._parts(schema, depth)
        return finish(add_conditional_properties(whole, conditional))

    def _parts(self, schema: Any, depth: int) -> tuple[Json, list[Json]]:
        """The schemas that apply to one value, and those that apply under conditions."""
        if not isinstance(schema, dict):
            return {}, []
        part = cast("Json", schema)
        cost = _cost(part)
        if not depth or cost > self._left:
            return _cut(part), []
        self._left -= cost
        whole, conditional = self._own(part, depth - 1), self._conditional(part, depth - 1)
        for other, others_conditional in self._joined(part, depth - 1):
            conjoin(whole, other)
            conditional += others_conditional
        return whole, conditional

    def _own(self, schema: Json, depth: int) -> Json:
        own = read(schema)
        self._add_members(own, schema, depth)
        self._add_items(own, schema, depth)
        for keyword in ("anyOf", "oneOf"):
            # "Exactly one" would be wrong for parts that admit more after rewriting.
            if options := self._options(schema.get(keyword), depth):
                conjoin(own, options[0] if len(options) == 1 else {"anyOf": options})
        if apart := _names_apart(schema.get("not")):
            add_words(own, f"Not together: {', '.join(describe_names(apart))}.")
        return own

    def _options(self, value: Any, depth: int) -> list[Json]:
        options = cast("list[Any]", value) if isinstance(value, list) else []
        return [option for option in (self._node(item, depth) for item in options) if option is not None]

    def _conditional(self, schema: Json, depth: int) -> list[Json]:
        """The schemas that may apply. The server checks whether they do."""
        dependent = schema.get("dependentSchemas")
        parts: list[Any] = list(cast("Json", dependent).values()) if isinstance(dependent, dict) else []
        if "if" in schema:
            parts += [schema.get("then"), schema.get("else")]
        return [node for node in (self._node(part, depth) for part in parts if part) if node]

    def _joined(self, schema: Json, depth: int) -> Iterator[tuple[Json, list[Json]]]:
        """The schemas that apply in addition: the target of a reference, and all of `allOf`."""
        if "$ref" in schema:
            yield self._referred(schema["$ref"], depth)
        members = schema.get("allOf")
        for member in cast("list[Any]", members) if isinstance(members, list) else []:
            yield self._parts(member, depth)

    def _referred(self, reference: Any, depth: int) -> tuple[Json, list[Json]]:
        target = self._references.find(reference)
        if not isinstance(target, dict):
            return {}, []
        part = cast("Json", target)
        if self._inside.count(id(part)) >= RECURSION_LIMIT:
            return add_words(_outline(part), "Nested further, in the same way."), []
        self._inside.append(id(part))
        try:
            return self._parts(part, depth)
        finally:
            self._inside.pop()

    # --- the parts of objects and arrays ---

    def _add_members(self, own: Json, schema: Json, depth: int) -> None:
        for keyword in ("properties", "patternProperties"):
            if isinstance(value := schema.get(keyword), dict):
                parts = {name: self._node(part, depth) for name, part in cast("Json", value).items()}
                own[keyword] = {name: part for name, part in parts.items() if part is not None}
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict | bool):
            own["additionalProperties"] = rest if isinstance(rest, bool) else self._node(rest, depth)
        if isinstance(schema.get("propertyNames"), dict):
            own["propertyNames"] = self._node(schema["propertyNames"], depth)
        if bad := [name for name in own.get("patternProperties", ()) if pattern(name) is GONE]:
            for name in bad:
                del own["patternProperties"][name]
            own.pop("additionalProperties", None)  # it would forbid what matched the pattern

    def _add_items(self, own: Json, schema: Json, depth: int) -> None:
        first, rest = schema.get("prefixItems"), schema.get("items")
        if isinstance(rest, list):  # how tuples were written before 2020-12
            first, rest = cast("list[Any]", rest), schema.get("additionalItems")
        if isinstance(first, list) and first:
            self._add_tuple(own, cast("list[Any]", first), rest, depth)
        elif rest is False:
            own |= {"items": {}, "maxItems": 0}
        elif isinstance(rest, dict):
            own["items"] = self._node(rest, depth)

    def _add_tuple(self, own: Json, first: list[Any], rest: Any, depth: int) -> None:
        """Adds a tuple. Not every API knows tuples, so the items may be any of its types, and a sentence
        describes the order."""
        items = [self._node(item, depth) or {} for item in first]
        kinds = [_kind(item) for item in items[:10]] + ["…"] * (len(items) > 10)
        if rest is False:
            own["maxItems"] = min(own.get("maxItems", len(items)), len(items))
        elif own.get("maxItems", len(items) + 1) > len(items):
            items.append(self._node(rest, depth) or {})
        own["items"] = either(items)
        add_words(own, f"In this order: {', '.join(kinds)}.")


def _kind(item: Json) -> str:
    kind = " or ".join(types(item)) or "anything"
    title = str(item.get("title") or item.get("description") or "")[:60]
    return f"{kind} ({title})" if title else kind


def _names_apart(denied: Any) -> list[str]:
    """Parameters that `not` forbids in combination, if it contains nothing else."""
    names: list[Any] = []
    match denied:
        case {"required": [*names], **rest} if not rest:
            pass
        case _:
            pass
    return [name for name in names if isinstance(name, str) and is_safe(name)]


def _cost(schema: Json) -> int:
    cost = 1
    for keyword, value in schema.items():
        if isinstance(value, str):
            cost += len(value) >> 8
        elif keyword in ("default", "examples"):
            cost += size(value, VALUE_LIMIT)
        elif isinstance(value, dict | list):
            cost += len(cast("list[Any]", value))
    return cost


def _cut(schema: Json) -> Json:
    has_more = any(isinstance(value, dict | list) for value in schema.values())
    outline = _outline(schema)
    return add_words(outline, "Not shown in full.") if has_more else outline


def _outline(schema: Json) -> Json:
    """A summary of a schema without its inner schemas."""
    parts = {keyword: schema.get(keyword) for keyword in ("type", "description")}
    return read({key: value for key, value in parts.items() if isinstance(value, str) and len(value) < 500})


# --- the root ---


def _as_root(schema: Json) -> Json:
    whole = _without_choices(schema)
    whole["type"] = "object"
    whole.setdefault("properties", {})
    return {keyword: value for keyword, value in finish(whole).items() if keyword in OF_OBJECTS}


def _without_choices(schema: Json) -> Json:
    """An object with alternatives, as one object that admits all of them."""
    choices: list[list[Json]] = [schema.pop("anyOf")] if "anyOf" in schema else []
    choices += [part["anyOf"] for part in schema.pop("allOf", ())]
    for choice in choices:
        options = [_without_choices(option) for option in choice if _may_be_object(option)]
        if options:
            conjoin(schema, _closed_alternatives(schema, options))
            if sentence := describe_options(options):
                add_words(schema, sentence)
    return schema


def _may_be_object(schema: Json) -> bool:
    return "type" not in schema or "object" in types(schema)


def _closed_alternatives(schema: Json, options: list[Json]) -> Json:
    """The alternatives united. What only some of them state about an already described parameter is left
    out."""
    united = unite(options)
    uses = Counter(name for option in options for name in option.get("properties", ()))
    for name in schema.get("properties", ()):
        if uses[name] < len(options):
            united["properties"].pop(name, None)
    return united
