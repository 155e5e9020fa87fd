"""The form of a rule's subject: rejects one that can name no tool, and finds what is probably meant. Pure.

A rule with such a subject would match nothing; for a deny or an ask that would not be noticed.
"""

from __future__ import annotations

import re
from typing import Final

from dragoman.cleaning import fold, one_line
from dragoman.names import RESERVED
from dragoman.permissions.conditions import BadRule

SHELL: Final = "Bash"
UNFINISHED: Final = re.compile(r"mcp__(?:[^_]+(?:_[^_]+)*__)?")

_BETWEEN = re.compile(r"\s*[,;|\n\r\uff0c\uff1b\u3001]\s*|\s+(?=mcp__)", re.IGNORECASE)
_FORBIDDEN = re.compile(r"""[:?\[\]{}^$\\"`<>]""")
"""Quotes and characters of other pattern languages. In names they are written as `_`."""
_AROUND: Final = """!^$"'`<>[]{}- \t"""
_REGULAR = re.compile(r"(?:__|\A)\.\*")
_NEARLY_RESERVED = re.compile(r"mcp(?![a-z0-9*]|_\*)[^a-z0-9*]*", re.IGNORECASE)
"""`mcp_`, `mcp-`, `mcp:` and the like; `mcp_*` fits `mcp__…`."""
_BUILTIN = re.compile(r"[\w*][\w.*/-]*")
_SHELL_WITHOUT_PARENTHESES = re.compile(rf"{SHELL}[\s:=]+(.+)", re.IGNORECASE | re.DOTALL)
_NAMES_INSIDE = re.compile(r"mcp__[\w*.-]+", re.IGNORECASE)
_NEXT_RULE = re.compile(r"\)\s*[,;|\s]\s*(mcp__[^\s(),;|]+|Bash\b)", re.IGNORECASE)
"""Matches another rule after the closing parenthesis of one."""


def check_subject(name: str, *, is_allow: bool) -> None:
    """Raises `BadRule` for a subject that can name no tool, whatever servers there are."""
    seen = name if is_allow else fold(name)  # as it is compared
    if _BETWEEN.search(name):
        parts = ", ".join(f'"{one_line(each, 80)}"' for each in _listed(name))
        raise BadRule(f"a rule names one tool or server (write each as a text of its own: {parts})")
    if not seen.startswith(RESERVED) and _NEARLY_RESERVED.match(fold(name)):
        raise BadRule(f"the names of servers' tools begin with {RESERVED}{_suggested(name)}")
    if _REGULAR.search(seen):
        raise BadRule(f"* alone matches any characters{_suggested(name)}")
    if found := _FORBIDDEN.search(seen):
        raise BadRule(f"no name of a tool has the character {found[0]} in it{_suggested(name)}")
    if not seen.startswith(RESERVED) and not _BUILTIN.fullmatch(seen):
        others = "others have letters, digits, _ and - only"
        raise BadRule(f"names of servers' tools begin with {RESERVED}, {others}{_suggested(name)}")


def fault_of_name(name: str) -> str | None:
    """Why the name can be that of no tool, in a rule or in the matcher of a hook."""
    try:
        check_subject(name, is_allow=False)
    except BadRule as fault:
        return str(fault)
    return None


def check_single(inside: str) -> None:
    """Raises `BadRule` if the text between the parentheses of a shell rule is the end of one rule and the
    beginning of another: `Bash(git push), Bash(rm *)`."""
    depth = 0
    for at, char in enumerate(inside):
        depth += (char == "(") - (char == ")")
        if depth < 0 and _NEXT_RULE.match(inside, at):
            raise BadRule("there are several rules in one text (write each as a text of its own)")


def subjects_meant(text: str) -> list[str]:
    """The probable subjects of a rule that cannot be read. In doubt it includes more."""
    head = re.split(r"[(@)]", text, maxsplit=1)[0].strip()
    head = head if head.isascii() else fold(head)
    names = [_meant(each) for each in _listed(head)]
    names += [_meant(found[1]) for found in _NEXT_RULE.finditer(text)]
    if not any(each.startswith(RESERVED) for each in names):
        names += _NAMES_INSIDE.findall(head)
    is_odd_name = head.startswith(RESERVED) and _FORBIDDEN.search(head)
    if is_odd_name or (not head.startswith(RESERVED) and _NEARLY_RESERVED.match(head)):
        names.append(head)  # it may still be a name
    return [each for each in dict.fromkeys(names) if each]


def _listed(text: str) -> list[str]:
    """The subjects of a list in one text: `mcp__a__x, y` is two tools of `a`, and `mcp__a, b` two servers."""
    first, *others = _BETWEEN.split(text)
    if fold(first).startswith(RESERVED):
        server, _, tool = first[len(RESERVED) :].rpartition("__")
        start = first[: len(first) - len(tool)] if server else RESERVED
        others = [each if _is_whole(each) else f"{start}{each}" for each in others if each]
    return [each for each in (first, *others) if each]


def _is_whole(name: str) -> bool:
    return fold(name).startswith(("mcp", SHELL.lower()))


def _suggested(name: str) -> str:
    command = _SHELL_WITHOUT_PARENTHESES.fullmatch(name)
    meant = f"{SHELL}({command[1]})" if command else _meant(name)
    return f" (did you mean {one_line(meant, 200)}?)" if meant and meant != name else ""


def _meant(name: str) -> str:
    """The subject that is probably meant; empty if there is none."""
    name = _REGULAR.sub(lambda found: found[0].replace(".", ""), name.strip(_AROUND))
    if fold(name).startswith(RESERVED) and name.isascii():
        name = RESERVED + name[len(RESERVED) :]
    elif _NEARLY_RESERVED.match(name):
        name = _NEARLY_RESERVED.sub(RESERVED, name, count=1)
    if not name.startswith(RESERVED):
        found = _BUILTIN.match(name)
        return found[0] if found else ""
    if "__" not in name[len(RESERVED) :]:
        name = re.sub(r"\s*:+\s*", "__", name, count=1)
    name = name.replace(":", "_")
    if found := _FORBIDDEN.search(name):
        name = f"{name[: found.start()].rstrip()}*"
    return f"{name}*" if UNFINISHED.fullmatch(name) else name
