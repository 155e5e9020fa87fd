"""Compares a deny or an ask with a command, skipping options of the command. Pure.

`git -C . push` is `git push`, and `npm --prefix x run --silent deploy` is `npm run deploy`. Which options
take the next word is known only for git's options before its subcommand. For every other option both are
tried, independently for each option. The time grows with the words of the command times those of the pattern.
Options after the last other word of a command are not skipped: `git status` is not `git status -s`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dragoman.permissions.patterns import Glob, fold
from dragoman.permissions.shell.nested_programs import base, git_subcommand, git_takes_a_word
from dragoman.permissions.shell.pattern import ANY, FILES, UNKNOWN, ShellPattern, is_known


class _State(NamedTuple):
    """How far a pattern is matched before a word of the command."""

    word: int
    """The index of the pattern's word that is matched next, or is matched in part."""
    part: int = 0
    """The index of the next part of that word. After the first part there is a `*`, which may match more
    words."""


def hits_past_options(pattern: ShellPattern, words: Sequence[str]) -> bool:
    """Whether the pattern matches the command with some of its options skipped."""
    return _Comparison(pattern.deny_words, words).is_hit()


def may_hit_past_options(pattern: ShellPattern, words: Sequence[str]) -> bool:
    """Whether the pattern could match once the shell has expanded the unknown parts. Returns true in
    doubt."""
    return _Comparison(pattern.deny_words, words).may_be_hit()


class _Comparison:
    def __init__(self, pattern: Sequence[Glob], words: Sequence[str]) -> None:
        self._pattern = pattern
        self._words = words
        self._end = max((at for at, word in enumerate(words) if not word.startswith("-")), default=0)
        self._subcommand = git_subcommand(words) if words and base(words[0]) == "git" else 0
        self._reached = defaultdict[int, set[_State]](set)
        """Index of a word → the possible states before it."""
        self._reached[0].add(_State(0))
        self._has_options = any(word.startswith("-") for word in words[1 : self._end])

    def is_hit(self) -> bool:
        if not self._has_options:
            return False
        for at, word in self._places():
            self._match(at, fold(word))
            self._skip(at)
        return any(map(self._is_complete, self._reached[len(self._words)]))

    def may_be_hit(self) -> bool:
        if not self._has_options:
            return False
        for at, word in self._places():
            if not is_known(word):
                if any(self._may_match(state, word) for state in self._reached[at]):
                    return True
            else:
                self._match(at, fold(word))
            if self._skip(at) and not all(map(is_known, self._words[at : at + 2])):
                return True
        return False

    def _places(self) -> Iterator[tuple[int, str]]:
        """The words, as long as any state remains."""
        for at, word in enumerate(self._words):
            if not self._reached[at] and not self._reached[at + 1]:
                return
            yield at, word

    def _match(self, at: int, word: str) -> None:
        for state in self._reached[at]:
            if state.word < len(self._pattern):
                self._reached[at + 1].update(_after(self._pattern[state.word].folded, state, word))

    def _skip(self, at: int) -> bool:
        """Skips the option, alone or with the next word; returns whether there was an option."""
        word = self._words[at]
        if not 0 < at < self._end or not word.startswith("-"):
            return False
        states = {state for state in self._reached[at] if state.word and not state.part}
        for step in self._steps(at, word):
            self._reached[at + step].update(states)
        return bool(states)

    def _steps(self, at: int, option: str) -> tuple[int, ...]:
        if at < self._subcommand:
            return (2,) if git_takes_a_word(option) else (1,)
        return (1,) if "=" in option else (1, 2)

    def _may_match(self, state: _State, word: str) -> bool:
        if state.word == len(self._pattern) or state.part:
            return True
        head = fold(word.replace(FILES, UNKNOWN).partition(UNKNOWN)[0])
        parts = self._pattern[state.word].folded
        return parts[0].startswith(head) or (len(parts) > 1 and head.startswith(parts[0]))

    def _is_complete(self, state: _State) -> bool:
        """Whether the whole pattern is matched: `rm *` also matches `rm` alone."""
        is_last = state == _State(len(self._pattern) - 1) and len(self._pattern) > 1
        return state.word == len(self._pattern) or (is_last and self._pattern[-1].parts == ANY)


def _after(parts: tuple[str, ...], state: _State, word: str) -> list[_State]:
    """The state after one more word. A `*` matches as little as possible, which is always as good."""
    part, at = state.part, 0
    if part == 0:
        if len(parts) == 1:
            return [_State(state.word + 1)] if word == parts[0] else []
        if not word.startswith(parts[0]):
            return []
        part, at = 1, len(parts[0])
    last = len(parts) - 1
    while part < last and (found := word.find(parts[part], at)) >= 0:
        part, at = part + 1, found + len(parts[part])
    states = [_State(state.word, part)]
    if part == last and word.endswith(parts[last]) and len(word) - len(parts[last]) >= at:
        states.append(_State(state.word + 1))
    return states
