"""Prompts as servers list them, and the messages of a prompt.

Decides which prompts of a list are usable, and cleans the messages. An invalid prompt is dropped with its
reason; the others are not affected. `commands.py` parses the command line, and `calls/prompts.py` sends the
requests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal, TypeVar, cast

from msgspec import Raw, Struct, structs

from dragoman.catalog.paging import definition_as, scalar
from dragoman.catalog.replies import PartialReply
from dragoman.catalog.texts import DESCRIPTION_LIMIT, TITLE_LIMIT, text
from dragoman.cleaning import for_model, is_safe, one_line
from dragoman.content.blocks import Block, ResourceBlock, UnknownBlock
from dragoman.content.json_scan import Broken, Members, TooManyParts, Walk, first_byte
from dragoman.content.large_blocks import SMALL_BYTES, read_any_block
from dragoman.errors import InvalidArguments
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.codec import Unreadable, decode_as, split_as
from dragoman.wire.messages import ABSENT

NAME_LIMIT: Final = 1024
ARGUMENT_LIMIT: Final = 100
MESSAGE_LIMIT: Final = 1000
TEXT_LIMIT: Final = 100_000
"""The maximum length of one message for a model, in characters."""
ALL_TEXT_LIMIT: Final = 1_000_000
"""The maximum length of all messages together, in characters."""

_ANY: Any = Any

S = TypeVar("S", bound=Struct)


class PromptArgument(Struct, frozen=True):
    """An argument of a prompt."""

    name: str
    """The name that its server uses."""
    title: str | None = None
    description: str = ""
    required: bool = False


class PromptDefinition(Struct, frozen=True, kw_only=True):
    server: ServerName
    wire_name: str
    title: str | None = None
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()
    meta: Mapping[str, Any] = {}


class Prompt(PromptDefinition, frozen=True, kw_only=True):
    """A prompt that a person can call by its name."""

    name: QualifiedName

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Raises `InvalidArguments` with the arguments that are missing, unknown or not text."""
        known = {argument.name for argument in self.arguments}
        problems = [
            f"it needs {argument.name!r}"
            for argument in self.arguments
            if argument.required and argument.name not in arguments
        ]
        problems += [f"it has no argument {name!r}" for name in arguments if name not in known]
        problems += [
            f"{name!r} is not text" for name, value in arguments.items() if not isinstance(value, str)
        ]
        if problems:
            raise InvalidArguments(self.server, self.name, (*problems, f"usage: {self.usage}"))

    @property
    def usage(self) -> str:
        """How a person types it, with its arguments."""
        words = (one_line(each.name, 80) for each in self.arguments)
        shown = (f"<{word}>" if each.required else f"[{word}]" for word, each in zip(words, self.arguments))
        return " ".join([f"/{self.name}", *shown])


class PromptMessage(Struct, frozen=True):
    """One message of a prompt that was filled in."""

    role: Literal["user", "assistant"]
    content: Block


class PromptResult(Struct, frozen=True, kw_only=True):
    """The result of a prompt: messages for a model, cleaned like everything that a model reads."""

    server: ServerName
    name: QualifiedName
    description: str = ""
    messages: tuple[PromptMessage, ...] = ()
    problems: tuple[str, ...] = ()


class Completion(Struct, frozen=True):
    """Completions of an argument, as the server suggests them."""

    values: tuple[str, ...] = ()
    has_more: bool = False
    total: int | None = None


# Lists.


class _Argument(Struct):
    name: str
    title: Any = None
    description: Any = None
    required: Any = False


class _Listed(Struct, rename={"meta": "_meta"}):
    name: str
    title: Any = None
    description: Any = None
    arguments: list[_Argument] | None = None
    meta: dict[str, Any] | None = None


def read_prompt(server: ServerName, raw: Raw) -> PromptDefinition:
    """A prompt of a list, or `Unreadable` with the reason why it cannot be used."""
    listed = definition_as(_Listed, raw)
    _check_name(listed.name)
    arguments = listed.arguments or []
    names = [argument.name for argument in arguments]
    if len(arguments) > ARGUMENT_LIMIT:
        raise Unreadable(f"it has more than {ARGUMENT_LIMIT} arguments")
    if len(set(names)) < len(names):
        raise Unreadable("two of its arguments have the same name")
    for name in names:
        _check_name(name)
    return PromptDefinition(
        server=server,
        wire_name=listed.name,
        title=text(listed.title, TITLE_LIMIT) or None,
        description=text(listed.description, DESCRIPTION_LIMIT),
        arguments=tuple(_argument(argument) for argument in arguments),
        meta=listed.meta or {},
    )


def _argument(argument: _Argument) -> PromptArgument:
    title, description = text(argument.title, TITLE_LIMIT), text(argument.description, DESCRIPTION_LIMIT)
    return PromptArgument(argument.name, title or None, description, argument.required is True)


def _check_name(name: str) -> None:
    if not name.strip():
        raise Unreadable("it, or an argument of it, has no name")
    if len(name) > NAME_LIMIT:
        raise Unreadable(f"its name, or that of an argument, is longer than {NAME_LIMIT} characters")
    if not is_safe(name) or "\n" in name:
        raise Unreadable(f"{one_line(name, 80)!r} has invisible or invalid characters in its name")


# Results.


class _Message(Struct):
    content: Raw
    role: Raw = ABSENT


class _Result(Members):
    messages: Raw = ABSENT
    description: Raw = ABSENT
    resultType: Raw = ABSENT


class PromptReply(Struct, frozen=True):
    """A reply to `prompts/get`."""

    description: str
    messages: tuple[PromptMessage, ...]
    problems: tuple[str, ...]


def read_prompt_result(raw: Raw) -> tuple[str, PromptReply]:
    """The kind of result, and the result; a message that cannot be read is left out alone."""
    reply = PartialReply(raw, _Result)
    messages = _Messages()
    problems: list[str] = []
    for number, message in enumerate(reply.array("messages"), 1):
        if number > MESSAGE_LIMIT or messages.are_full:
            messages.is_cut = True
            break
        try:
            messages.add(message)
        except Unreadable as error:
            problems.append(f"message {number} is left out: {error.detail}")
    if messages.is_cut:
        limits = f"{MESSAGE_LIMIT} messages or {ALL_TEXT_LIMIT} characters"
        problems.append(f"more than {limits}: the rest is left out")
    if reply.is_cut:
        problems.append("it has too many values: the rest is left out")
    description = text(_small(reply.raw("description")), DESCRIPTION_LIMIT)
    return reply.kind, PromptReply(description, tuple(messages.found), tuple(problems))


def _small(raw: Raw) -> Any:
    return None if raw is ABSENT or memoryview(raw).nbytes > SMALL_BYTES else decode_as(_ANY, raw)


class _Messages:
    """The messages of one reply, with one limit for all their texts together."""

    def __init__(self) -> None:
        self.found: list[PromptMessage] = []
        self.is_cut = False
        self._room = ALL_TEXT_LIMIT

    @property
    def are_full(self) -> bool:
        return len(self.found) >= MESSAGE_LIMIT or self._room <= 0

    def add(self, raw: Raw) -> None:
        """Adds one message. By the specification it has one block; some servers put several blocks into one
        message."""
        message = split_as(_Message, raw)
        role: Literal["user", "assistant"] = "assistant" if scalar(message.role) == "assistant" else "user"
        for block in _blocks(message.content):
            if self.are_full:
                self.is_cut = True
                break
            self.found.append(PromptMessage(role, self._cleaned(read_any_block(block))))

    def _cleaned(self, block: Block) -> Block:
        match block:
            case UnknownBlock(value):
                kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
                return UnknownBlock({"type": text(kind, TITLE_LIMIT)})
            case ResourceBlock(resource):
                return ResourceBlock(self._with_cleaned_texts(resource))
            case _:
                return self._with_cleaned_texts(block)

    def _with_cleaned_texts(self, part: S) -> S:
        """The block with all its texts cleaned, except data in base64."""
        texts: dict[str, str] = {}
        for name in part.__struct_fields__:
            value = getattr(part, name)
            if isinstance(value, str) and name not in ("data", "blob"):
                texts[name] = for_model(value, max(0, min(TEXT_LIMIT, self._room)))
                self._room -= len(texts[name])
        return structs.replace(part, **texts)


def _blocks(content: Raw) -> Iterator[Raw]:
    view = memoryview(content)
    if first_byte(view) != b"[":
        yield content
        return
    try:
        for begin, end in Walk(view).elements(0):
            yield Raw(view[begin:end])
    except (TooManyParts, Broken):
        raise Unreadable("it has too many values") from None


class _Values(Struct, rename="camel"):
    values: list[Any] = []
    total: Any = None
    has_more: Any = False


class _Completed(Struct):
    completion: _Values


COMPLETION_LIMIT: Final = 100
"""The maximum number of values of one completion, by the specification."""


def read_completion(raw: Raw) -> Completion:
    completion = decode_as(_Completed, raw).completion
    fitting = (each for each in completion.values if isinstance(each, str) and _fits_a_line(each))
    usable = list(islice(fitting, COMPLETION_LIMIT + 1))
    total = (
        completion.total
        if isinstance(completion.total, int) and not isinstance(completion.total, bool)
        else None
    )
    is_cut = len(usable) > COMPLETION_LIMIT
    return Completion(tuple(usable[:COMPLETION_LIMIT]), completion.has_more is True or is_cut, total)


def _fits_a_line(value: str) -> bool:
    return len(value) <= NAME_LIMIT and is_safe(value) and "\n" not in value
