"""Prompts as servers list them, and the messages of a prompt.

Decides which prompts of a list are usable, and cleans the messages. An invalid prompt is dropped with its
reason; the others are not affected. `commands.py` parses the command line, and `calls/prompts.py` sends the
requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, Final, Literal, TypeVar, cast

from msgspec import Raw, Struct, structs

from dragoman.catalog.texts import DESCRIPTION_LIMIT, TITLE_LIMIT, text
from dragoman.cleaning import for_model, is_safe, one_line
from dragoman.content.blocks import Block, ResourceBlock, UnknownBlock, read_block
from dragoman.errors import InvalidArguments
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.codec import Unreadable, decode_as

NAME_LIMIT: Final = 1024
ARGUMENT_LIMIT: Final = 100
MESSAGE_LIMIT: Final = 1000
TEXT_LIMIT: Final = 100_000
"""Characters of one message that a model is given."""

S = TypeVar("S", bound=Struct)


class PromptArgument(Struct, frozen=True):
    """An argument of a prompt."""

    name: str
    """As its server spells it."""
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
        """`InvalidArguments` that names what is missing, unknown or no text."""
        known = {argument.name for argument in self.arguments}
        problems = [
            f"it needs {argument.name!r}"
            for argument in self.arguments
            if argument.required and argument.name not in arguments
        ]
        problems += [f"it has no argument {name!r}" for name in arguments if name not in known]
        problems += [f"{name!r} is not text" for name, said in arguments.items() if not isinstance(said, str)]
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
    """What a prompt came to: messages for a model, cleaned like everything that a model reads."""

    server: ServerName
    name: QualifiedName
    description: str = ""
    messages: tuple[PromptMessage, ...] = ()
    problems: tuple[str, ...] = ()


class Completion(Struct, frozen=True):
    """What may come next, as far as the server says."""

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
    """A prompt of a list, or `Unreadable`: it cannot be used, and why."""
    said = decode_as(_Listed, raw)
    _check_name(said.name)
    arguments = said.arguments or []
    names = [argument.name for argument in arguments]
    if len(arguments) > ARGUMENT_LIMIT:
        raise Unreadable(f"it has more than {ARGUMENT_LIMIT} arguments")
    if len(set(names)) < len(names):
        raise Unreadable("two of its arguments have the same name")
    for name in names:
        _check_name(name)
    return PromptDefinition(
        server=server,
        wire_name=said.name,
        title=text(said.title, TITLE_LIMIT) or None,
        description=text(said.description, DESCRIPTION_LIMIT),
        arguments=tuple(_argument(argument) for argument in arguments),
        meta=said.meta or {},
    )


def _argument(said: _Argument) -> PromptArgument:
    title, description = text(said.title, TITLE_LIMIT), text(said.description, DESCRIPTION_LIMIT)
    return PromptArgument(said.name, title or None, description, said.required is True)


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
    role: str = "user"


class _Result(Struct, rename="camel"):
    messages: list[Raw] | None = None
    description: Any = None
    result_type: str = "complete"


class PromptReply(Struct, frozen=True):
    """A reply to `prompts/get`."""

    description: str
    messages: tuple[PromptMessage, ...]
    problems: tuple[str, ...]


def read_prompt_result(raw: Raw) -> tuple[str, PromptReply]:
    """The kind of result, and the result; a message that cannot be read is left out alone."""
    result = decode_as(_Result, raw)
    if result.messages is None and result.result_type == "complete":
        raise Unreadable("it has no 'messages'")
    messages: list[PromptMessage] = []
    problems: list[str] = []
    raws = result.messages or []
    for number, message in enumerate(raws[:MESSAGE_LIMIT], 1):
        try:
            messages += _messages(message)
        except Unreadable as error:
            problems.append(f"message {number} is left out: {error.detail}")
    if len(raws) > MESSAGE_LIMIT:
        problems.append(f"more than {MESSAGE_LIMIT} messages: the rest is left out")
    description = text(result.description, DESCRIPTION_LIMIT)
    return result.result_type, PromptReply(description, tuple(messages), tuple(problems))


def _messages(raw: Raw) -> Iterable[PromptMessage]:
    """One, as the specification says; some servers put several blocks into one message."""
    said = decode_as(_Message, raw)
    blocks = (
        decode_as(list[Raw], said.content) if bytes(memoryview(said.content)[:1]) == b"[" else [said.content]
    )
    role: Literal["user", "assistant"] = "assistant" if said.role == "assistant" else "user"
    return [PromptMessage(role, _cleaned(read_block(block))) for block in blocks[:MESSAGE_LIMIT]]


def _cleaned(block: Block) -> Block:
    match block:
        case UnknownBlock(value):
            kind = cast("dict[str, Any]", value).get("type") if isinstance(value, dict) else None
            return UnknownBlock({"type": text(kind, TITLE_LIMIT)})
        case ResourceBlock(resource):
            return ResourceBlock(_with_cleaned_texts(resource))
        case _:
            return _with_cleaned_texts(block)


def _with_cleaned_texts(part: S) -> S:
    """All its texts, without data in base64."""
    fields = {name: getattr(part, name) for name in part.__struct_fields__ if name not in ("data", "blob")}
    texts = {name: for_model(said, TEXT_LIMIT) for name, said in fields.items() if isinstance(said, str)}
    return structs.replace(part, **texts)


class _Values(Struct, rename="camel"):
    values: list[Any] = []
    total: Any = None
    has_more: Any = False


class _Completed(Struct):
    completion: _Values


COMPLETION_LIMIT: Final = 100
"""Values of one completion, by the specification."""


def read_completion(raw: Raw) -> Completion:
    said = decode_as(_Completed, raw).completion
    fitting = (each for each in said.values if isinstance(each, str) and _fits_a_line(each))
    usable = list(islice(fitting, COMPLETION_LIMIT + 1))
    total = said.total if isinstance(said.total, int) and not isinstance(said.total, bool) else None
    is_cut = len(usable) > COMPLETION_LIMIT
    return Completion(tuple(usable[:COMPLETION_LIMIT]), said.has_more is True or is_cut, total)


def _fits_a_line(value: str) -> bool:
    return len(value) <= NAME_LIMIT and is_safe(value) and "\n" not in value
