r"""The patterns of shell rules: the text between the parentheses of `Bash(…)`. Pure, except that reading one
of a deny or an ask looks at the folders of `PATH`.

Parses them, and compares them with the words of one command.

- Words are separated by blanks; quotes keep blanks inside a word. `\*`, `\\` and `\"` mean the
  character itself.
- A `*` alone is one word or more; as a part of a word it stays inside that word.
- `npm run:*` is `npm run` alone or with anything after it. `*` alone is every command.
- Without any wildcard a pattern also means exactly this text, whatever is in it: `Bash(make && make
  install)`.
- A deny or an ask also means its program by other spellings of the path, and by its bare name if the
  folder is in `PATH` or a usual one for programs; a variable in it matches any text.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, structs

from dragoman.paths import normal_path
from dragoman.permissions.conditions import BadRule, escaped, read_escaped
from dragoman.permissions.patterns import Glob, fits, fold

UNKNOWN: Final = "\x1e"
"""Placeholder in a parsed word for the value of a variable or of a substitution: it is unknown before the
command runs."""
FILES: Final = "\x1d"
"""Placeholder in a parsed word for the result of a file pattern, a brace expansion, `~` or `$((…))`."""
GLOB: Final = UNKNOWN + FILES
"""Placeholder for a file pattern at the beginning of a word: the name of a file that it finds may be an
option, such as `--to-command=x`."""
BREAK: Final = "\x1f"
"""Separates words that are compared as one text; no word of a parsed command contains it."""

BLANKS: Final = " \t\n"
"""Exactly the characters that shells skip around a command: a form feed is a part of a word."""
ANY: Final = ("", "")
"""The parts of a word that is `*` alone."""

_QUOTED_WHOLE = re.compile(r"""(["'`])(?:(?!\1).)*\s(?:(?!\1).)*\1""", re.DOTALL)
"""One word with blanks: no program has such a name."""
_NAMES_THE_ARGUMENT = re.compile(r"(?:command|cmd)\s*(?:!?=|:(?!\*))", re.IGNORECASE)
"""The name of the argument before the command, as in a rule about another tool."""
_JOINS_COMMANDS = re.compile(r"[;&|<>()`\n$]")
_OPERATOR = re.compile(r"\s*(\|\||&&|[;&|])\s*")
_VARIABLE = re.compile(r"\$(?:\{[^{}]*\}|[A-Za-z_][A-Za-z0-9_]*)")
_OTHER_PATTERN = re.compile(r"[?\[{]")
_PROGRAM_FOLDERS: Final = ("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
_TOKEN = re.compile(
    r"""\\(?P<plain>[\\*" ])|(?P<star>\*)|(?P<quote>["'])|(?P<blank>[ \t]+)|(?P<other>.)""", re.DOTALL
)


class ShellPattern(Struct, frozen=True):
    text: str
    exact: str | None
    """The exact text it means, if it has no wildcard."""
    words: tuple[Glob, ...]
    """The words of the pattern; empty if it cannot be one simple command."""
    may_end: bool
    """Whether the words may end before the last `*`: `npm run:*`."""
    parts: tuple[str, ...]
    """All words as one folded text, for a deny or an ask."""
    deny_words: tuple[Glob, ...]
    """The words of the pattern, even if it cannot be one simple command."""
    others: tuple[ShellPattern, ...] = ()
    """Other patterns that a deny or an ask may mean."""

    @property
    def readings(self) -> tuple[ShellPattern, ...]:
        """For a deny or an ask: all patterns that it may mean."""
        return (self, *self.others)

    @property
    def is_any(self) -> bool:
        return self.text in ("*", ":*")

    def is_exactly(self, command: str) -> bool:
        return self.exact is not None and self.exact == command.strip(BLANKS)

    def covers(self, words: Sequence[str], assignments: int) -> bool:
        """For an allow: whether the pattern covers a simple command, whose assignments come first.

        Assignments change what a program is or does (`PATH=`, `GIT_SSH=`), so no `*` matches one.
        """
        own = self.words
        if not own or any(not word.is_exact for word in own[:assignments]) or len(own) < assignments:
            return False
        if self.may_end and _in_order(own[:-1], words):
            return True
        return _in_order(own, words)

    def hits(self, words: Sequence[str]) -> bool:
        """For a deny or an ask: whether a command matches, in any spelling."""
        text = BREAK.join(map(fold, words))
        if fits(self.parts, text):
            return True
        # `rm *` and `rm:*` also match `rm` alone.
        return len(self.words) > 1 and self.words[-1].parts == ANY and fits(self.parts, text + BREAK)

    def may_hit(self, words: Sequence[str]) -> bool:
        """Whether the pattern could match once the shell has expanded the unknown parts. Returns true in
        doubt."""
        head, is_open, _ = BREAK.join(map(fold, words)).replace(FILES, UNKNOWN).partition(UNKNOWN)
        if not is_open:
            return False
        start = self.parts[0].rstrip(BREAK)
        return head.startswith(start) or start.startswith(head)


def read_pattern(text: str, *, is_allow: bool) -> ShellPattern:
    text = text.strip(BLANKS)
    if not text:
        raise BadRule("there is no command between the parentheses; for every command write Bash")
    if _QUOTED_WHOLE.fullmatch(text):
        raise BadRule("the whole command is in quotes; write it without them, as Bash(git push *)")
    pattern = _read(text, is_allow=is_allow)
    if is_allow:
        return pattern
    _check_program(text)
    others = dict.fromkeys(_other_readings(text))
    return structs.replace(pattern, others=tuple(_read(each, is_allow=False) for each in others))


def spaced(text: str) -> str:
    """The text with blanks around the operators that join commands."""
    return _OPERATOR.sub(r" \1 ", text).strip(BLANKS)


def _first_word(text: str) -> str:
    return re.split(f"[{BLANKS}]", text, maxsplit=1)[0]


def _check_program(text: str) -> None:
    """Raises `BadRule` if the first word cannot be the name of a program: the rule would match nothing."""
    program = _first_word(text)
    if _NAMES_THE_ARGUMENT.match(text):
        raise BadRule("it is the command itself that is written here: Bash(git push *)")
    if program.startswith("!") and program != "!":
        raise BadRule("a rule cannot say what it does not mean; write the commands it is for, without !")
    if program.startswith("^") or (text.endswith("$") and not text.endswith(" $")):
        raise BadRule("it is not a regular expression; write Bash(git push *), without ^ and $")
    if _VARIABLE.search(program):
        raise BadRule("variables are not expanded in rules; write the name of the program")
    if program not in ("[", "[[", "{") and _OTHER_PATTERN.search(program):
        raise BadRule(
            "* alone matches any characters, and one rule is for one program; write a rule for each"
        )


def _other_readings(text: str) -> Iterator[str]:
    """Other patterns that a deny or an ask may mean, by other spellings of the program."""
    texts = dict.fromkeys((text, _VARIABLE.sub("*", text), text.replace(".*", "*"), spaced(text)))
    for each in texts:
        if each != text:
            yield each
        program = _first_word(each)
        for path in _program_spellings(program):
            yield path + each[len(program) :]


def _program_spellings(program: str) -> Iterator[str]:
    if "/" not in program:
        return
    path = normal_path(posixpath.expanduser(program.strip("\"'")))
    yield path
    folder, name = posixpath.split(path)
    if folder in {*_PROGRAM_FOLDERS, *map(normal_path, os.get_exec_path())} and name.strip(":*"):
        yield name


def _read(text: str, *, is_allow: bool) -> ShellPattern:
    plain = read_escaped(text)
    may_end = text.endswith(":*") and len(plain) > 1 and plain[-1] == ""
    is_one = not _JOINS_COMMANDS.search(text)
    if is_allow and not is_one and len(plain) > 1:
        raise BadRule("a pattern with * is for one command without ; & | < > ( ) ` $: write a rule for each")
    words = _read_words(text[:-2] + " *" if may_end else text, is_allow=is_allow)
    if is_allow and len(plain) > 1 and any(FILES in part for word in words for part in word):
        raise BadRule(
            "a pattern with * cannot have ~ for a home folder: write the path of the home folder, "
            "or quote the ~ of a file's name"
        )
    globs = tuple(map(Glob.of, words))
    return ShellPattern(
        text,
        plain[0] if len(plain) == 1 else None,
        globs if is_one else (),
        may_end,
        tuple(map(fold, _joined(words))),
        globs,
    )


def _read_words(text: str, *, is_allow: bool) -> list[tuple[str, ...]]:
    """The parts of each word. For an allow, a `~` that the shell expands becomes `FILES`, which matches no
    word of a command: the pattern then allows exactly its text."""
    words: list[list[str]] = []
    is_open, quote = False, ""
    for match in _TOKEN.finditer(text):
        if match["blank"] and not quote:
            is_open = False
            continue
        is_start = not is_open
        if is_start:
            words.append([""])
            is_open = True
        if match["quote"] and quote in ("", match["quote"]):
            quote = "" if quote else match["quote"]
        elif match["star"]:
            words[-1].append("")
        elif is_allow and match[0] == "~" and not quote and (is_start or text[match.start() - 1] in "=:"):
            words[-1][-1] += FILES
        else:
            words[-1][-1] += match["plain"] or match[0]
    return [tuple(word) for word in words]


def _joined(words: Sequence[tuple[str, ...]]) -> list[str]:
    """The parts of all words as if they were one."""
    parts = [""]
    for number, word in enumerate(words):
        parts[-1] += (BREAK if number else "") + word[0]
        parts.extend(word[1:])
    return parts


def _in_order(patterns: Sequence[Glob], words: Sequence[str]) -> bool:
    """Whether the words match one by one; a lone `*` matches one or more of them."""
    runs: list[list[Glob]] = [[]]
    for pattern in patterns:
        if pattern.parts == ANY:
            runs.append([])
        else:
            runs[-1].append(pattern)
    if len(runs) == 1:
        return len(words) == len(runs[0]) and _fit(runs[0], words, 0)
    first, *middle, last = runs
    at, end = len(first), len(words) - len(last)
    if at >= end or not _fit(first, words, 0) or not _fit(last, words, end):
        return False
    for run in middle:
        at += 1
        while at + len(run) < end and not _fit(run, words, at):
            at += 1
        if at + len(run) >= end:
            return False
        at += len(run)
    return True


def _fit(patterns: Sequence[Glob], words: Sequence[str], at: int) -> bool:
    return all(
        is_known(word) and pattern.fits_carefully(word)
        for pattern, word in zip(patterns, words[at : at + len(patterns)], strict=True)
    )


def is_known(word: str) -> bool:
    """Whether the word has no parts that the shell expands."""
    return UNKNOWN not in word and FILES not in word


def pattern_for(command: str) -> str:
    """The pattern that means exactly this command."""
    return escaped(command.strip(BLANKS))
