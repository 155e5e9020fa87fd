"""Hooks as values, declared in files or in code.

`hook` declares a function of a program as a hook. The name of a hook for people never contains its whole
command or address: both may contain secrets, and reasons are given to models.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from itertools import dropwhile
from typing import Any, Final

from msgspec import Struct

from dragoman.cleaning import one_line
from dragoman.config.masking import masked_words
from dragoman.errors import ConfigError
from dragoman.hooks import matchers
from dragoman.hooks.events import EVENTS

TIMEOUT_SECONDS: Final = 60.0
LONGEST_TIMEOUT_SECONDS: Final = 24 * 3600.0

HookInput = dict[str, Any]
HookOutput = Mapping[str, Any] | None
HookFunction = Callable[[HookInput], HookOutput | Awaitable[HookOutput]]
"""A function or coroutine function. Its argument is the JSON that a command gets; it returns the JSON that a
command prints."""


class CommandHook(Struct, frozen=True):
    """A command that the shell runs, as the person wrote it."""

    command: str

    def __repr__(self) -> str:
        return "<Command>"


class HttpHook(Struct, frozen=True):
    """An HTTP request to a URL. Never printed: URL and headers may contain secrets."""

    url: str
    """The URL in canonical form."""
    headers: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        return "<HttpHook>"


class FunctionHook(Struct, frozen=True):
    function: HookFunction


class UnusableHook(Struct, frozen=True):
    """Replaces a blocking hook that cannot be understood."""

    reason: str


class Hook(Struct, frozen=True, kw_only=True):
    """One hook; made by `hook`, or read from a settings file."""

    event: str
    what: CommandHook | HttpHook | FunctionHook | UnusableHook
    name: str
    """The name that people and models are shown."""
    matches: matchers.Matcher = matchers.EVERYTHING
    timeout_seconds: float = TIMEOUT_SECONDS
    blocks_on_error: bool = False
    is_managed: bool = False
    only_restricts: bool = False
    """Whether its matcher matches the tool only by another name than the current one: then its allow is
    ignored."""

    def is_same(self, other: Hook) -> bool:
        """Whether both would do the same thing."""
        return self.event == other.event and self.what == other.what


def hook(
    function: HookFunction,
    event: str,
    *,
    matcher: str = "",
    timeout_seconds: float = TIMEOUT_SECONDS,
    blocks_on_error: bool = False,
    name: str | None = None,
) -> Hook:
    """Declares a function of this program as a hook.

    A plain function runs on the event loop: keep it short. A coroutine function has `timeout_seconds`.
    `blocks_on_error`: whether the call or request is refused when the hook fails.
    """
    if event not in EVENTS:
        raise ConfigError(f"there is no hook event {event!r}", hint=f"One of {', '.join(EVENTS)}.")
    if not callable(function):
        raise ConfigError(
            f"hook for {event}: a value of type {type(function).__name__} is not a function",
            hint=f'Pass the function itself: `hook(check, "{event}")`.',
        )
    if not 0 < timeout_seconds <= LONGEST_TIMEOUT_SECONDS:
        raise ConfigError(f"hook for {event}: its time limit must be more than 0 s and at most a day")
    try:
        matches = matchers.parse(matcher)
    except matchers.BadMatcher as error:
        raise ConfigError(f"hook for {event}: {error}") from None
    return Hook(
        event=event,
        what=FunctionHook(function),
        name=one_line(name or name_of_function(function), 80),
        matches=matches,
        timeout_seconds=timeout_seconds,
        blocks_on_error=blocks_on_error,
    )


def name_of_function(function: object) -> str:
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return name.replace("<locals>.", "")


_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=")
_OPERATORS: Final = frozenset("|&;<>()")
_INTERPRETERS: Final = frozenset(
    {"bash", "bun", "deno", "env", "exec", "node", "npx", "perl", "php", "python", "python3", "ruby", "sh",
     "uv", "uvx", "zsh"}
)  # fmt: skip
_FLAGS: Final = frozenset({"-m", "-u", "-y", "--yes"})
"""Options of interpreters after which the script follows. After others anything may follow."""


def name_of_command(command: str) -> str:
    """The program that a command runs, and the script if the program is an interpreter. It contains no other
    word and no value of a variable, because each may be a secret."""
    try:
        words = _words(command[:2000])
    except ValueError:  # a quote that is not closed
        return "a command"
    if not words:
        return "a command"
    program, *rest = words
    if program.rpartition("/")[2] in _INTERPRETERS:
        script = next(dropwhile(_FLAGS.__contains__, rest), "-")
        program = program if script.startswith("-") else " ".join((program, *masked_words([script])))
    return one_line(program, 80)


def _words(command: str) -> list[str]:
    """The words of a command, without operators and variables that are set for it."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "", True
    return [word for word in lexer if not (_ASSIGNMENT.match(word) or _OPERATORS.issuperset(word))]
