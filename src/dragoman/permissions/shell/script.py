"""Splits a shell command into the simple commands that it would run.

`parse_script` uses the syntax tree of tree-sitter-bash. That parser differs from bash in rare cases, so its
result is verified: each piece of the text must be a word that `words` reads in the same way, an
operator that is valid there, or blank; anything else makes the whole text *unclear*. In an unclear text,
commands are still found as far as possible: that is enough for a deny.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from dragoman.permissions.shell.pattern import UNKNOWN, is_known
from dragoman.permissions.shell.words import Substitutions, Unclear, read_word

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

LENGTH_LIMIT: Final = 20_000
DEPTH_LIMIT: Final = 40
NO_PARSER: Final = (
    "shell commands cannot be read without the extra `agent` (in a clone: pip install '.[agent]')"
)


class SimpleCommand(Struct, frozen=True):
    words: tuple[str, ...]
    """The program and its arguments, without quotes. Empty for an assignment alone."""
    assignments: tuple[str, ...] = ()
    """The assignments before the program: `PATH=/x`."""

    @property
    def all_words(self) -> tuple[str, ...]:
        return self.assignments + self.words


class Script(Struct, frozen=True):
    commands: tuple[SimpleCommand, ...]
    unclear: str | None = None
    """Describes what is not understood."""
    redirection: str | None = None
    """A redirection that reads or writes a file."""
    is_unread: bool = False
    """Whether there is no parser, so that its commands are unknown."""


_STATEMENTS: Final[dict[str, frozenset[str]]] = {
    "program": frozenset({";", "&", "\n"}),
    "list": frozenset({"&&", "||"}),
    "pipeline": frozenset({"|", "|&"}),
    "subshell": frozenset({"(", ")", ";", "&", "\n"}),
    "compound_statement": frozenset({"{", "}", ";", "&", "\n"}),
    "negated_command": frozenset({"!"}),
    "redirected_statement": frozenset(),
    "if_statement": frozenset({"if", "then", "fi", ";", "&", "\n"}),
    "elif_clause": frozenset({"elif", "then", ";", "&", "\n"}),
    "else_clause": frozenset({"else", ";", "&", "\n"}),
    "while_statement": frozenset({"while", "until", ";", "&", "\n"}),
    "do_group": frozenset({"do", "done", ";", "&", "\n"}),
    "command_substitution": frozenset({"$(", "`", ")", ";", "&", "\n"}),
    "process_substitution": frozenset({"<(", ">(", ")", ";", "&", "\n"}),
    "variable_assignments": frozenset(),
}
"""Kinds of nodes that hold commands → the operators and words of the language that are allowed in them."""

_COMMANDS: Final = frozenset({"command", "declaration_command", "unset_command", "variable_assignment"})
_SUBSTITUTIONS: Final = frozenset({"command_substitution", "process_substitution", "arithmetic_expansion"})
_REDIRECTIONS: Final = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})

_RESERVED = re.compile(
    r"if|then|else|elif|fi|do|done|case|esac|while|until|for|in|function|select|\{|\}|!|\[\[|\]\]|coproc"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HARMLESS = re.compile(r"(?:\d?(?:>>?|<)|&>>?)[ \t]*/dev/null|\d?[<>]&[ \t]*(?:\d|-)")
_SUM = re.compile(r"\$\(\([0-9 +*/%()-]*\)\)")
# Between double brackets, -eq and similar operators run code in the value of a variable: a[$(…)].
_TEST = re.compile(r"\[ [\w ./=!:,+@%-]+ \]|\[\[ (?!.*-(?:eq|ne|lt|gt|le|ge) )[\w ./=!:,+@%-]+ \]\]")
_GAP = re.compile(r"(?:[ \t\n]|\\\n)*")
_ODD_IN_BACKTICKS = re.compile(r"[\\\"']")
_CONTINUED = re.compile(r"\\\n")


@lru_cache(maxsize=128)
def parse_script(command: str) -> Script:
    unclear = _unfit(command)
    if unclear is not None:
        return Script((), unclear)
    data = command.encode()
    try:
        parser = _parser()
    except ImportError:
        return Script((), NO_PARSER, is_unread=True)
    root = parser.parse(data).root_node
    reader = _Reader(data.decode("latin-1"))
    try:
        if root.has_error:
            raise Unclear("it does not read as a command of the shell")
        reader.outside(root)
        reader.statements(root, 0)
    except Unclear as error:
        return Script(tuple(_seen(root, reader)), str(error))
    return Script(tuple(reader.commands), None, reader.redirection)


def _parser() -> Parser:
    # One for each text: a parser must not be used by two threads at once.
    from tree_sitter import Parser

    return Parser(_language())


def has_parser() -> bool:
    """Whether the parser is installed. Does not load it."""
    return all(find_spec(name) is not None for name in ("tree_sitter", "tree_sitter_bash"))


@cache
def _language() -> Language:
    # Loaded for the first command: most hosts run none.
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def _unfit(command: str) -> str | None:
    if len(command) > LENGTH_LIMIT:
        return f"it has more than {LENGTH_LIMIT} characters"
    if _CONTROL.search(command):
        return "it has control characters"
    if not command.isascii() and any(_is_odd(char) for char in command):
        return "it has invisible characters or unusual white space"
    return None


def _is_odd(char: str) -> bool:
    return not char.isascii() and (char.isspace() or unicodedata.category(char)[0] in "CZ")


class _Reader:
    """Reads the tree of one text, and checks it against the text."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.commands: list[SimpleCommand] = []
        self.redirection: str | None = None

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte]

    def outside(self, root: Node) -> None:
        """Checks that there are only blanks before and after the parsed text."""
        if self.source[: root.start_byte].strip(" \t\n") or self.source[root.end_byte :].strip(" \t\n"):
            raise Unclear("a text that was not read to its end")

    def statements(self, node: Node, depth: int) -> None:
        """Reads a node that contains commands, with everything in it."""
        allowed = _STATEMENTS.get(node.type)
        if allowed is None or depth > DEPTH_LIMIT:
            raise Unclear(f"{node.type.replace('_', ' ')} in it")
        self._check_order(node, allowed)
        for child in node.children:
            if child.is_named:
                self._statement(child, depth + 1)

    def _statement(self, node: Node, depth: int) -> None:
        if node.type == "comment":
            return
        if node.type in _REDIRECTIONS:
            self._redirection(node, depth)
        elif node.type in _COMMANDS:
            self._command(node, depth)
        elif node.type == "test_command":
            if not _TEST.fullmatch(self.text(node)):
                raise Unclear("a test with more than plain words")
        else:
            self.statements(node, depth)

    def _check_order(self, node: Node, allowed: frozenset[str]) -> None:
        """Checks that there are only valid operators and blanks between the commands."""
        before: Node | None = None
        for child in node.children:
            if not child.is_named and self._operator(child) not in allowed:
                raise Unclear(f"{self.text(child)[:20]!r} where it does not belong")
            self._check_gap(before, child, node.start_byte)
            before = child
        if before is not None and before.end_byte != node.end_byte:
            self._blank(before.end_byte, node.end_byte)
        if self.text(node).lstrip(" ").startswith(("((", "$((")):
            raise Unclear("two opening parentheses")

    def _operator(self, node: Node) -> str:
        return self.text(node).strip(" \t") or "\n"

    def _check_gap(self, before: Node | None, node: Node, start: int) -> None:
        gap = self._blank(start if before is None else before.end_byte, node.start_byte)
        if before is None:
            return
        if not gap and node.type in _REDIRECTIONS and not self._may_touch(node):
            raise Unclear("words without blanks between them")
        if before.is_named and node.is_named and not _is_joined(before, node):
            if "\n" not in _CONTINUED.sub("", gap):
                raise Unclear("commands with nothing between them")
        elif not gap and (_is_wordy(before, self) or _is_wordy(node, self)):
            raise Unclear("a word of the language that touches another")

    def _blank(self, start: int, end: int) -> str:
        """Checks that the text between two positions is blank; joined lines count as blank."""
        gap = self.source[start:end]
        if not _GAP.fullmatch(gap) or (gap and not _CONTINUED.sub("", gap)):
            raise Unclear("something between the words")
        return gap

    def _command(self, node: Node, depth: int) -> None:
        if node.type == "variable_assignment":
            self.commands.append(SimpleCommand((), (self._word(node, depth),)))
            return
        words: list[str] = []
        assignments: list[str] = []
        end = node.start_byte
        for child in node.children:
            gap = self._blank(end, child.start_byte)
            is_redirection = child.type in _REDIRECTIONS
            touches = not gap and end != node.start_byte
            if "\n" in _CONTINUED.sub("", gap) or (touches and not self._may_touch(child)):
                raise Unclear("words without blanks between them")
            end = child.end_byte
            if is_redirection:
                self._redirection(child, depth)
            elif child.type == "variable_assignment" and not words:
                assignments.append(self._word(child, depth))
            else:
                words.append(self._word(child, depth))
        if words:
            self._check_program(node, words[0])
        self.commands.append(SimpleCommand(tuple(words), tuple(assignments)))

    def _may_touch(self, node: Node) -> bool:
        """Whether a redirection may directly follow a word: not if the word could be the number that it
        redirects."""
        is_redirection = node.type in _REDIRECTIONS and self.source[node.start_byte] in "<>&"
        return is_redirection and self.source[node.start_byte - 1] not in "0123456789}"

    def _check_program(self, node: Node, program: str) -> None:
        name = next((child for child in node.children if child.type == "command_name"), None)
        if not program or not is_known(program) or "=" in program:
            raise Unclear("a program that is known only when it runs")
        if name is not None and _RESERVED.fullmatch(self.text(name)):
            raise Unclear(f"{program[:20]!r} as a program")

    def _word(self, node: Node, depth: int) -> str:
        holes = self._holes(node, depth)
        return read_word(self.source, node.start_byte, node.end_byte, holes)

    def _holes(self, node: Node, depth: int) -> Substitutions:
        """The substitutions of a word, each read separately."""
        holes: dict[int, int] = {}
        sums: dict[int, int] = {}
        for inner in _outermost(node, _SUBSTITUTIONS):
            text = self.text(inner)
            start = inner.start_byte + len(text) - len(text.lstrip(" \t\n"))
            if inner.type == "arithmetic_expansion":
                if not _SUM.fullmatch(text.strip()):
                    raise Unclear("arithmetic with more than numbers")
                sums[start] = inner.end_byte
                continue
            elif text.lstrip().startswith("`") and _ODD_IN_BACKTICKS.search(text):
                raise Unclear("quotes or backslashes between backticks")
            else:
                self.statements(inner, depth + 1)
            holes[start] = inner.end_byte
        return Substitutions(holes, sums)

    def _redirection(self, node: Node, depth: int) -> None:
        if node.type == "herestring_redirect":
            self._herestring(node, depth)
        elif node.type != "file_redirect":
            raise Unclear("a here-document")
        elif not _HARMLESS.fullmatch(self.text(node)):
            targets = [child for child in node.children if child.is_named and child.type != "file_descriptor"]
            if len(targets) > 1:
                raise Unclear("words behind a redirection")
            for target in targets:
                self._word(target, depth)
            self.redirection = self.redirection or self.text(node)

    def _herestring(self, node: Node, depth: int) -> None:
        operator, *words = node.children
        if self.text(operator) != "<<<" or len(words) != 1:
            raise Unclear("words behind a redirection")
        self._blank(operator.end_byte, words[0].start_byte)
        self._word(words[0], depth)


def _is_joined(before: Node, node: Node) -> bool:
    """Whether the node may follow another without an operator: a redirection, a clause, a comment."""
    follows = {"do_group", "elif_clause", "else_clause", "comment"} | _REDIRECTIONS
    return node.type in follows or before.type in ("comment",)


def _is_wordy(node: Node, reader: _Reader) -> bool:
    return not node.is_named and (reader.text(node).isalpha() or node.type in ("{", "!"))


def _outermost(node: Node, kinds: frozenset[str]) -> Iterator[Node]:
    todo = [node]
    while todo:
        each = todo.pop()
        if each.type in kinds:
            yield each
        else:
            todo.extend(reversed(each.children))


def _seen(root: Node, reader: _Reader) -> Iterator[SimpleCommand]:
    """Every command in the tree, as far as its words can be read."""
    todo = [root]
    while todo:
        node = todo.pop()
        todo.extend(reversed(node.children))
        if node.type in ("command", "declaration_command", "unset_command"):
            words = [
                _seen_word(child, reader)
                for child in node.children
                if child.type != "variable_assignment" and child.type not in _REDIRECTIONS
            ]
            yield SimpleCommand(tuple(words))


def _seen_word(node: Node, reader: _Reader) -> str:
    holes = {inner.start_byte: inner.end_byte for inner in _outermost(node, _SUBSTITUTIONS)}
    try:
        return read_word(reader.source, node.start_byte, node.end_byte, Substitutions(holes))
    except Unclear:
        return UNKNOWN
