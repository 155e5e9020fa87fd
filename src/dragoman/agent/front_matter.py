"""Reads the front matter of an agent's file: YAML fields, each of which must have its type.

YAML aliases are refused: a few lines of them can expand to gigabytes. Fields without effect are reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from dragoman.cleaning import one_line
from dragoman.config.scopes import CLAIMS, Scope
from dragoman.errors import MissingPackage
from dragoman.names import letters_of
from dragoman.permissions.modes import MODES, PermissionMode

_FENCE: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_ALIASES: Final[Mapping[str, str]] = {
    "mcpServers": "servers",
    "requiredMcpServers": "requiredServers",
    "subagent_type": "name",
}
"""Keys with the same meaning in agent files of other programs."""


_RESTRICTING: Final[Mapping[str, str]] = {
    **{
        letters_of(key).removesuffix("s"): key
        for key in ("tools", "disallowedTools", "servers", "requiredServers", "maxTurns", "permissionMode")
    },
    "allowedtool": "tools",
    "mcpserver": "servers",
    "requiredmcpserver": "requiredServers",
}
"""Keys that restrict the agent, by their letters without case, punctuation and the last s. A key that is
misspelled in this way is refused, because the agent would not be restricted."""


class InvalidAgent(Exception):
    """The file is not a valid definition of an agent. The message is the reason."""


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """The fields of the front matter, and the text after it. Raises `InvalidAgent`, and `MissingPackage`."""
    fence = _FENCE.match(text)
    if fence is None:
        raise InvalidAgent("it does not begin with front matter between two lines ---")
    return _fields(fence[1]), text[fence.end() :]


def front_matter_length(text: str) -> int:
    """The number of characters of the front matter. It is limited, because parsing a hundred characters of
    YAML takes a millisecond."""
    fence = _FENCE.match(text)
    return 0 if fence is None else len(fence[1])


def _fields(text: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingPackage("pyyaml", "agent") from None

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
                raise InvalidAgent("its front matter uses a YAML alias (*), which is not allowed")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = Counter(key.value for key, _ in node.value if isinstance(key.value, str))
            if repeated := next((key for key, count in keys.items() if count > 1), None):
                raise InvalidAgent(f'its front matter has "{one_line(repeated, 60)}" more than once')
            return super().construct_mapping(node, deep)

    try:
        found: Any = yaml.load(text, Loader)  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 2})" if mark is not None else ""
        what = getattr(error, "problem", None) or type(error).__name__
        raise InvalidAgent(f"its front matter is not YAML{line}: {what}") from None
    if not isinstance(found, dict):
        raise InvalidAgent("its front matter has no keys")
    fields: dict[str, Any] = {}
    for key, value in cast("dict[object, Any]", found).items():
        name = _ALIASES.get(str(key), str(key))
        if name in fields:
            raise InvalidAgent(f'its front matter has "{one_line(name, 60)}" twice, under two names')
        fields[name] = value
    return fields


class FrontMatter:
    """The fields of one file; each can be read once."""

    def __init__(self, fields: dict[str, Any], scope: Scope) -> None:
        self._left = fields
        """The fields that were not read yet."""
        self._scope = scope
        self._problems: list[str] = []

    def problems(self) -> list[str]:
        """Descriptions of fields without effect. To be called after all fields were read. Raises
        `InvalidAgent` for a field that was meant to restrict the agent."""
        for key in self._left:
            wanted = _RESTRICTING.get(letters_of(key).removesuffix("s"))
            if wanted == "permissionMode" and self._scope != "user":
                continue  # it has no effect, however it is written
            if wanted is not None:
                raise InvalidAgent(f'"{one_line(key, 60)}" must be written "{wanted}"')
        unused = [f"{one_line(key, 60)} has no effect" for key in self._left]
        return [*self._problems, *unused]

    def text(self, key: str) -> str | None:
        return self._typed(key, lambda value: isinstance(value, str), "text")

    def number(self, key: str) -> int | None:
        self._check_value(key)
        return self._typed(
            key,
            lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
            "a number above 0",
        )

    def names(self, key: str) -> tuple[str, ...] | None:
        """Reads a list of texts, or one text with commas."""
        found = self._list(key)
        if found is None:
            return None
        if isinstance(found, str):
            return tuple(name.strip() for name in found.split(",") if name.strip())
        names = cast("list[object]", found) if isinstance(found, list) else [None]
        if not all(isinstance(name, str) for name in names):
            raise InvalidAgent(f'"{key}" must be a list of names')
        return tuple(map(str, names))

    def model(self) -> str | None:
        model = self.text("model")
        if model in (None, "inherit"):
            return None
        if ":" not in model:
            self._problems.append(f"model {one_line(model, 60)!r} is not provider:name; it has no effect")
            return None
        return model

    def mode(self) -> PermissionMode | None:
        if self._scope == "user":
            self._check_value("permissionMode")
        mode = self.text("permissionMode")
        if mode is None:
            return None
        if self._scope != "user":
            self._problems.append("permissionMode has no effect here: only your own agents may set it")
            return None
        if mode not in MODES:
            raise InvalidAgent(f'"permissionMode" must be one of {", ".join(MODES)}')
        return mode

    def servers(self) -> tuple[str | Mapping[str, object], ...] | None:
        found: Any = self._list("servers")
        if found is None:
            return None
        if isinstance(found, str):
            return tuple(name.strip() for name in found.split(",") if name.strip())
        if isinstance(found, dict):
            found = [found]
        if not isinstance(found, list):
            raise InvalidAgent('"servers" must be a list of names and of entries by name')
        return tuple(self._server(item) for item in cast("list[object]", found))

    def _list(self, key: str) -> Any:
        """The value of a key that restricts the agent; None if the key is missing. Raises `InvalidAgent` if
        the key has no value."""
        self._check_value(key, "write [] for an empty list, or ")
        return self._left.pop(key, None)

    def _check_value(self, key: str, advice: str = "") -> None:
        if key in self._left and self._left[key] is None:
            raise InvalidAgent(f'"{key}" has no value: {advice}leave the key out')

    def _server(self, item: object) -> str | Mapping[str, object]:
        if isinstance(item, str):
            return item
        if not isinstance(item, dict):
            raise InvalidAgent('"servers" must be a list of names and of entries by name')
        entries = cast("dict[object, object]", item)
        return {str(name): self._entry(entry) for name, entry in entries.items()}

    def _entry(self, entry: object) -> object:
        """The entry without fields that only the person's own settings may set."""
        fields = cast("Mapping[str, Any]", entry) if isinstance(entry, dict) else None
        if fields is None or self._scope == "user":
            return cast("object", entry)
        claims = {field for field, value, _ in CLAIMS if _may_equal(fields.get(field), value)}
        self._problems += [f"{claim} of a server has no effect here" for claim in sorted(claims)]
        return {key: value for key, value in fields.items() if key not in claims}

    def _typed(self, key: str, fitting: Callable[[Any], bool], kind: str) -> Any:
        found = self._left.pop(key, None)
        if found is not None and not fitting(found):
            raise InvalidAgent(f'"{key}" must be {kind}')
        return found


def _may_equal(given: object, value: object) -> bool:
    """Whether a field of an entry has the value, or may have it after variables are replaced."""
    return given == value or (isinstance(given, str) and "${" in given)
