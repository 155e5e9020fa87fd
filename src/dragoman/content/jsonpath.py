"""A subset of JSONPath. Pure, and uses the standard library only, because it also runs in a child process.

The paths that `read_result` accepts:

    path     = ["$"] *step
    step     = "." name | ".*" | ".." name | "[" inside "]"
    inside   = number | [number] ":" [number] | "*" | quoted | "?" filter
    filter   = ["("] "@" *("." name | "[" (number | quoted) "]") [operator literal] [")"]
    operator = "==" | "!=" | "<=" | ">=" | "<" | ">"
    literal  = number | quoted | "true" | "false" | "null"

A filter without an operator holds where the value exists. Numbers count from the end if they are negative.
What several ways lead to (`$..a..a`) is found once. No path is compiled to code. No step finds a place in the
data twice, so each takes time linear in the data, times the length of a filter's path.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any, cast

STEP_LIMIT = 50

_NAME = re.compile(r"[^\s.\[\]()'\"*?@=<>!]+")
_NUMBER = re.compile(r"-?\d{1,12}")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?|true|false|null")
_OPERATOR = re.compile(r"==|!=|<=|>=|<|>")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}

Step = Callable[[Any], Iterator[Any]]
"""From a value to those at the next step."""
Walk = Callable[[Iterator[Any]], Iterator[Any]]
"""The same for all values at once."""


class BadPath(ValueError):
    """Why a path is not understood, in words."""


def found(value: Any, path: str) -> Iterator[Any]:
    """Every value at the path. `BadPath` at once if it is not understood."""
    values: Iterator[Any] = iter((value,))
    for walk in _Parser(path).walks():
        values = walk(values)
    return values


def _each(step: Step) -> Walk:
    def walk(values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            yield from step(value)

    return walk


class _Parser:
    def __init__(self, path: str) -> None:
        self._path = path.strip()
        self._at = 0

    def walks(self) -> list[Walk]:
        self._take("$")
        walks: list[Walk] = []
        while self._at < len(self._path):
            # The first name may stand without a point.
            is_first = not walks
            is_deep = self._take("..")
            walks.append(_anywhere(self._name()) if is_deep else _each(self._step(is_first=is_first)))
            if len(walks) > STEP_LIMIT:
                raise BadPath(f"it has more than {STEP_LIMIT} steps")
        return walks

    def _step(self, *, is_first: bool) -> Step:
        if self._take("["):
            step = self._inside()
            self._need("]")
            return step
        if self._take(".") or is_first:
            return _every if self._take("*") else _member(self._name())
        raise self._bad("`.` or `[`")

    def _inside(self) -> Step:
        self._blank()
        if self._take("?"):
            return self._filter()
        if self._take("*"):
            return _every
        if (key := self._quoted()) is not None:
            return _member(key)
        start = self._number()
        self._blank()
        if self._take(":"):
            self._blank()
            return _part(start, self._number())
        if start is None:
            raise self._bad("a number, a range, `*`, a quoted key or a filter")
        return _element(start)

    def _filter(self) -> Step:
        self._blank()
        has_bracket = self._take("(")
        self._blank()
        self._need("@")
        inner = self._filter_path()
        self._blank()
        test = self._comparison()
        if has_bracket:
            self._blank()
            self._need(")")
        self._blank()
        return _where(inner, test)

    def _filter_path(self) -> list[Step]:
        inner: list[Step] = []
        while self._path[self._at : self._at + 1] in (".", "["):
            inner.append(self._filter_step())
            if len(inner) > STEP_LIMIT:
                raise BadPath(f"its filter has more than {STEP_LIMIT} steps")
        return inner

    def _filter_step(self) -> Step:
        """To one value at most: were there many, each element could mean a search through everything."""
        if self._take("."):
            return _member(self._name())
        self._need("[")
        self._blank()
        key, number = self._quoted(), self._number()
        if key is None and number is None:
            raise self._bad("a number or a quoted key")
        self._blank()
        self._need("]")
        return _member(key) if key is not None else _element(cast("int", number))

    def _comparison(self) -> Callable[[Any], bool]:
        sign = self._match(_OPERATOR)
        if sign is None:
            return _exists
        self._blank()
        wanted: Any = self._quoted()
        if wanted is None:
            literal = self._match(_LITERAL)
            if literal is None:
                raise self._bad("a number, a quoted text, true, false or null")
            wanted = json.loads(literal)
        compare = _COMPARE[sign]
        return lambda value: _holds(compare, value, wanted)

    def _name(self) -> str:
        name = self._match(_NAME)
        if name is None:
            raise self._bad("a name")
        return name

    def _number(self) -> int | None:
        digits = self._match(_NUMBER)
        return None if digits is None else int(digits)

    def _quoted(self) -> str | None:
        text = self._match(_QUOTED)
        return None if text is None else re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)

    def _match(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._path, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match.group()

    def _take(self, mark: str) -> bool:
        if self._path.startswith(mark, self._at):
            self._at += len(mark)
            return True
        return False

    def _need(self, mark: str) -> None:
        if not self._take(mark):
            raise self._bad(f"`{mark}`")

    def _blank(self) -> None:
        while self._take(" "):
            pass

    def _bad(self, wanted: str) -> BadPath:
        return BadPath(f"expected {wanted} at character {self._at + 1}")


def _member(key: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and key in value:
            yield value[key]

    return step


def _element(number: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            elements = cast("list[Any]", value)
            if -len(elements) <= number < len(elements):
                yield elements[number]

    return step


def _part(start: int | None, stop: int | None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from cast("list[Any]", value)[start:stop]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from cast("dict[str, Any]", value).values()
    elif isinstance(value, list):
        yield from cast("list[Any]", value)


def _anywhere(key: str) -> Walk:
    def walk(values: Iterator[Any]) -> Iterator[Any]:
        # By identity: what is decoded from JSON shares no array or object, and all of them live on meanwhile.
        seen: set[int] = set()
        for value in values:
            waiting = [value]  # not by recursion: a server chose the depth
            while waiting:
                inner = waiting.pop()
                identity = id(inner)
                if not isinstance(inner, _CONTAINERS) or identity in seen:
                    continue
                seen.add(identity)
                if isinstance(inner, dict) and key in inner:
                    yield inner[key]
                waiting += reversed(list(_every(inner)))

    return walk


_CONTAINERS = (dict, list)


def _where(inner: list[Step], test: Callable[[Any], bool]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        for each in _every(value):
            if any(test(part) for part in _at(each, inner)):
                yield each

    return step


def _at(value: Any, steps: list[Step]) -> list[Any]:
    """What one step after the other leads to: one value, or none."""
    values = [value]
    for step in steps:
        values = [inner for each in values for inner in step(each)]
    return values


def _exists(_: Any) -> bool:
    return True


def _holds(compare: Callable[[Any, Any], bool], value: Any, wanted: Any) -> bool:
    # To Python, true is 1; to JSON it is not.
    if isinstance(value, bool) != isinstance(wanted, bool):
        return compare is operator.ne
    try:
        return bool(compare(value, wanted))
    except TypeError:
        return False
