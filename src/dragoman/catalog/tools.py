"""One tool, as models and programs see it.

Defines the interface that tools of servers and built-in tools share. Text of a server is cleaned here before
a model sees it; `definition` keeps it as it came. Nothing is decoded before it is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, Final, cast

import msgspec
from msgspec import Raw

from dragoman.catalog.annotations import Hints, hints_of
from dragoman.catalog.schemas import for_models
from dragoman.catalog.texts import DESCRIPTION_LIMIT, TITLE_LIMIT, text
from dragoman.cleaning import for_model
from dragoman.content.blocks import Block
from dragoman.errors import ConfigError
from dragoman.names import RESERVED, QualifiedName, ServerName, WireToolName
from dragoman.wire.codec import Unreadable, decode_as
from dragoman.wire.messages import ABSENT, ToolDefinition
from dragoman.wire.mirroring import BadMirror, Path, mirrored

BuiltinResult = str | tuple[Block, ...]
Run = Callable[[Mapping[str, Any]], Awaitable[BuiltinResult]]
Complete = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class Tool:
    """A tool that can be called by its name."""

    def __init__(self, server: ServerName, name: QualifiedName, definition: ToolDefinition) -> None:
        self.server = server
        """The server it belongs to; empty for a built-in tool."""
        self.name = name
        self.definition = definition
        """The definition as it was sent: untrusted text, only for comparison, not for display."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def title(self) -> str:
        """The name that people are shown, cleaned."""
        own = self.definition.title
        if not own:
            annotated = self.annotations.get("title")
            own = annotated if isinstance(annotated, str) and annotated else self.definition.name
        if self.definition.is_plain and len(own) <= TITLE_LIMIT:
            return own
        return for_model(own, TITLE_LIMIT)

    @property
    def is_parallel(self) -> bool:
        """Whether calls of one turn may run in parallel."""
        return self.hints.is_parallel

    @property
    def description(self) -> str:
        """The description, cleaned, and cut with a note if it is longer than the limit for models."""
        text = self.definition.description or ""
        if self.definition.is_plain and len(text) <= DESCRIPTION_LIMIT:  # the common case, found quickly
            return text
        return for_model(text, DESCRIPTION_LIMIT)

    @property
    def input_schema_bytes(self) -> int:
        """The size of its input schema as it was sent."""
        return memoryview(self.definition.input_schema).nbytes

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The input schema as the server sent it; arguments are checked against it.

        A schema with numbers too large for Python admits any object: the server checks the arguments.
        """
        schema = _decoded(self.definition.input_schema)
        return schema if isinstance(schema, dict) else {"type": "object"}

    @cached_property
    def model_schema(self) -> dict[str, Any]:
        """The input schema, cleaned, in a form that every model API accepts."""
        return for_models(self.input_schema)

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The output schema; None if it is missing or not a schema: the tool can be called in any case."""
        schema = _decoded(self.definition.output_schema)
        return schema if isinstance(schema, dict) else None

    @property
    def annotations(self) -> Mapping[str, Any]:
        """The annotations as the server sent them; see `hints` for their meaning."""
        return self.definition.annotations or {}

    @cached_property
    def hints(self) -> Hints:
        """Its annotations with the specification's defaults."""
        return hints_of(self.annotations)

    @property
    def meta(self) -> Mapping[str, Any]:
        """`_meta`, as its server sent it."""
        return self.definition.meta or {}

    @cached_property
    def task_support(self) -> str | None:
        """`execution.taskSupport`: `required`, `optional`, `forbidden`; None if it is not declared."""
        if self.definition.execution is ABSENT:
            return None
        execution: object = _value(self.definition.execution)
        if not isinstance(execution, dict):
            return None
        support = cast("dict[str, object]", execution).get("taskSupport")
        return support if isinstance(support, str) else None

    @property
    def ui(self) -> Mapping[str, Any]:
        """`_meta.ui` (MCP Apps), as its server sent it; empty if there is none."""
        ui: object = self.meta.get("ui")
        return cast("Mapping[str, Any]", ui) if isinstance(ui, Mapping) else {}

    @property
    def ui_resource(self) -> str | None:
        """The URI of the page that shows its results (MCP Apps), for programs that can show one:
        `Host.resources` reads it."""
        uri: object = self.ui.get("resourceUri", self.meta.get("ui/resourceUri"))  # the second is older
        return uri if isinstance(uri, str) and uri.startswith("ui://") else None

    @property
    def search_hint(self) -> str:
        """Additional words by which a search finds the tool."""
        return text(self.meta.get("anthropic/searchHint"), TITLE_LIMIT)

    @property
    def defers(self) -> bool:
        """Whether the tool declares that it is to be deferred."""
        return self.meta.get("anthropic/deferLoading") is True

    @property
    def always_loads(self) -> bool:
        """Whether the tool declares that it is always to be loaded."""
        return self.meta.get("anthropic/alwaysLoad") is True

    @cached_property
    def is_for_models(self) -> bool:
        """Whether models may call it. A server reserves a tool for its own user interface (MCP Apps) by
        leaving "model" out of `_meta.ui.visibility`."""
        visibility: object = self.ui.get("visibility")
        if isinstance(visibility, str):
            return visibility == "model"
        return not isinstance(visibility, list) or "model" in cast("list[object]", visibility)

    def as_listed(self) -> dict[str, Any]:
        """The parts of its definition that a model or a person is shown, or that change how it runs."""
        definition = self.definition
        listed = {
            "name": definition.name,
            "title": definition.title,
            "description": definition.description,
            "inputSchema": _decoded(definition.input_schema),
            "outputSchema": _decoded(definition.output_schema),
            "annotations": definition.annotations,
            "icons": _value(definition.icons),
            "execution": _value(definition.execution),
            "_meta": definition.meta,
        }
        return {key: value for key, value in listed.items() if value is not None}

    @cached_property
    def digest(self) -> str:
        """A digest that is the same for the same definition, however it was encoded."""
        return hashlib.sha256(msgspec.json.encode(self.as_listed(), order="sorted")).hexdigest()


def is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON. In Python, `0` equals `false`."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")


def _decoded(raw: Raw) -> dict[str, Any] | str | None:
    """The decoded schema; None if there is none. If it is not a schema, its text, so that two of them can be
    compared."""
    if raw is ABSENT:
        return None
    try:
        return decode_as(dict[str, Any], raw)
    except Unreadable:
        return bytes(raw).decode(errors="replace")


def _value(raw: Raw) -> Any:
    """Any value, or its text if it cannot be decoded."""
    if raw is ABSENT:
        return None
    try:
        return decode_as(object, raw)
    except Unreadable:
        return bytes(raw).decode(errors="replace")


FOR_APPS: Final = "its server offers it to apps only, not to models"
"""Why a model has no tool with this name."""

RESOURCES: Final = "resources"
"""The name under which rules about a server apply to its resources and lists."""


def _text_in(arguments: Mapping[str, Any], name: str | None) -> str:
    value = None if name is None else arguments.get(name)
    return value if isinstance(value, str) else ""


class ServerTool(Tool):
    """A tool of a server."""

    @property
    def wire_name(self) -> WireToolName:
        """The name that its server uses."""
        return WireToolName(self.definition.name)

    @cached_property
    def mirrored(self) -> Mapping[Path, str]:
        """The arguments that are repeated as headers, where the protocol requires it."""
        try:
            return mirrored(self.input_schema)
        except BadMirror:
            return {}


_OTHER_PROPERTIES: Final = frozenset({"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties"})


def may_have_argument(schema: Mapping[str, Any], name: object) -> bool:
    """Whether a tool with this input schema has such an argument, as far as its properties show it."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or _OTHER_PROPERTIES & schema.keys():
        return True
    return name in properties


class BuiltinTool(Tool):
    """A tool of this process, offered together with the tools of servers and called in the same way."""

    def __init__(
        self,
        name: str,
        run: Run,
        *,
        description: str,
        input_schema: Mapping[str, Any],
        title: str | None = None,
        annotations: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        needs_permission: bool = True,
        needs_no_rule: Callable[[Mapping[str, Any]], bool] | None = None,
        shell_argument: str | None = None,
        shell_folder: Callable[[], str] | None = None,
        server_argument: str | None = None,
        subject_argument: str | None = None,
        complete: Complete | None = None,
        by_other_names: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
        is_independent: bool = False,
    ) -> None:
        """`needs_permission`: false only for a tool that reads nothing but the host itself, or makes calls
        that are checked one by one; rules and hooks that deny it or ask about it still apply.
        `needs_no_rule`: whether a call with these arguments is made unless a rule or a hook denies it or
        asks, because it only reads the folder that the person works in. `shell_argument`: which of its
        arguments is a command for the shell; `shell_folder`: where the shell would run it now, empty for the
        folder that the person works in. `server_argument`: the argument that names the server that the tool
        deals with, so that rules and hooks about that server apply to it, too; `subject_argument`: the
        argument that names the resource or prompt of that server. `complete`: fills in arguments that the
        caller left out, before rules and hooks see the call; raises `InvalidArguments` if it cannot.
        `by_other_names`: the arguments with all other names of the same file, as a list; rules that deny or
        ask apply to them, too.
        `is_independent`: calls of one turn may run in parallel, although they do not only read."""
        if name.startswith(RESERVED):
            raise ConfigError(f"built-in tool {name!r}: names that begin with {RESERVED} are servers'")
        if iscoroutinefunction(needs_no_rule):  # a coroutine would count as a yes
            raise ConfigError(f"built-in tool {name!r}: needs_no_rule must be a plain function")
        named = {
            "shell_argument": shell_argument,
            "server_argument": server_argument,
            "subject_argument": subject_argument,
        }
        for option, argument in named.items():
            if argument is not None and not may_have_argument(input_schema, argument):
                reason = f"{option} is {argument!r}, which is not an argument of it"
                raise ConfigError(f"built-in tool {name!r}: {reason}")  # rules would not find it
        schema = Raw(msgspec.json.encode(input_schema))
        super().__init__(
            ServerName(""),
            QualifiedName(name),
            ToolDefinition(
                name,
                schema,
                title,
                description,
                annotations=dict(annotations or {}),
                meta=None if meta is None else dict(meta),
            ),
        )
        self.run = run
        self.needs_permission = needs_permission
        self.needs_no_rule = needs_no_rule
        self.shell_argument = shell_argument
        self.shell_folder = shell_folder
        self.server_argument = server_argument
        self.subject_argument = subject_argument
        self.complete = complete
        self.by_other_names = by_other_names
        self._is_independent = is_independent

    @property
    def is_parallel(self) -> bool:
        """Whether calls of one turn may run in parallel."""
        return self._is_independent or super().is_parallel

    def target(self, arguments: Mapping[str, Any]) -> tuple[ServerName, str]:
        """The server that a call with these arguments deals with, and the name of the resource or prompt
        there; empty if there is none."""
        server = _text_in(arguments, self.server_argument)
        return ServerName(server), (_text_in(arguments, self.subject_argument) or RESOURCES) if server else ""
