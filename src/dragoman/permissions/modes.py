"""Permission modes: what happens to a call that no rule decides. Pure.

Defines the modes, and which one a host uses. Rules take precedence over the mode: in every mode a deny rule
denies and an ask rule asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, cast, get_args

from dragoman.cleaning import one_line
from dragoman.config.schema import PermissionRules, restricting_mode

PermissionMode = Literal["default", "bypassPermissions", "auto", "dontAsk", "plan"]
MODES: Final[tuple[PermissionMode, ...]] = get_args(PermissionMode)

MEANINGS: Final[dict[PermissionMode, str]] = {
    "default": "a person is asked",
    "bypassPermissions": "it is allowed",
    "auto": "a classifier decides, or has a person asked",
    "dontAsk": "it is refused",
    "plan": "a read-only tool is asked about, others are refused",
}
"""How a call is decided that no rule decides."""

_STRICTNESS: Final[dict[PermissionMode, int]] = {
    "bypassPermissions": 0,
    "auto": 1,
    "default": 2,
    "dontAsk": 3,
    "plan": 3,
}
_FOR_ANY_PROJECT: Final = ("default", "dontAsk", "plan")
"""The modes that a project's file may set: a repository cannot reduce the number of questions."""
_OWN_SCOPES: Final = ("user", "enterprise")
_OF_A_PERSON: Final = (*_OWN_SCOPES, "dynamic")
"""The scopes of the person's and the administrator's files, and of the program."""
_RANKS: Final = ("enterprise", "local", "project", "dynamic", "user", "plugin")
"""The scopes in the order of precedence of their default mode."""

Part = tuple[str, str, PermissionRules]
"""Scope, source (a file, or "code"), and the mode."""


def effective(
    wanted: str | None, parts: Iterable[Part], *, asked_in_code: bool = False
) -> tuple[PermissionMode, str | None]:
    """The effective mode, and the problem with the requested one, if there is any.

    `asked_in_code`: a program or a flag explicitly set `wanted`, which then takes precedence over every
    file's `defaultMode`; otherwise `wanted` applies only if no file sets a mode.
    """
    ranked = sorted(parts, key=lambda part: _rank(part[0]))
    problems: list[str] = []
    mode = _known(wanted, "permission mode", problems)
    if mode is None or not asked_in_code:
        mode = _by_default(ranked, mode, problems)
    forbidder = _forbids_bypass(ranked)
    if mode == "bypassPermissions" and forbidder is not None:
        mode = "default"
        problems.append(
            f"the administrator's file {forbidder} forbids bypassPermissions; the mode is default"
        )
    return mode, "; ".join(problems) or None


def _rank(scope: str) -> int:
    return _RANKS.index(scope) if scope in _RANKS else len(_RANKS)


def _known(mode: str | None, where: str, problems: list[str]) -> PermissionMode | None:
    if mode is None or mode in MODES:
        return mode
    problems.append(f"{where} {one_line(str(mode), 100)!r} is not known; modes: {', '.join(MODES)}")
    return None


def _by_default(ranked: Sequence[Part], wanted: PermissionMode | None, problems: list[str]) -> PermissionMode:
    """The person's mode and the settings that override it, from the weakest to the strongest."""
    above, mode = _persons(ranked, problems)
    mode = mode or wanted
    is_persons = mode is not None
    current: PermissionMode = mode or "default"
    for scope, source, found in reversed(above):
        if _is_used(scope, found, current, is_persons):
            current, is_persons = found, scope in _OF_A_PERSON
        elif found not in _FOR_ANY_PROJECT:
            problems.append(f"{one_line(source)}: defaultMode {found} applies only in your own settings")
        elif found != current:
            problems.append(
                f"{one_line(source)}: defaultMode {found} is not used: {current} is at least as strict"
            )
    return current


def _persons(
    ranked: Iterable[Part], problems: list[str]
) -> tuple[list[tuple[str, str, PermissionMode]], PermissionMode | None]:
    """The settings that override the person's mode, the strongest first, then the person's mode."""
    above: list[tuple[str, str, PermissionMode]] = []
    for scope, source, rules in ranked:
        mode = _of_file(scope, f"{one_line(source)}: defaultMode", rules.default_mode, problems)
        if mode is not None and scope in _OWN_SCOPES:
            return above, mode
        if mode is not None:
            above.append((scope, source, mode))
    return above, None


def _of_file(scope: str, where: str, text: str | None, problems: list[str]) -> PermissionMode | None:
    """The mode that a file sets. What cannot be read in the person's or the administrator's file means
    "default": otherwise a weaker file's mode, which may permit everything, would be used."""
    mode = _known(text, where, problems)
    if text is None or mode is not None:
        return mode
    meant = restricting_mode(text)
    if meant is None and scope in _OWN_SCOPES:
        meant = "default"
    if meant is None:
        return None
    problems[-1] += f"; {meant} is used"
    return cast("PermissionMode", meant)


def _is_used(scope: str, mode: PermissionMode, current: PermissionMode, is_persons: bool) -> bool:
    """Whether a project's mode is used. It may only be stricter; of two equally strict modes, the person's is
    used."""
    if mode not in _FOR_ANY_PROJECT:
        return False
    if scope in _OF_A_PERSON:
        return True
    more = _STRICTNESS[mode] - _STRICTNESS[current]
    return more > 0 or (more == 0 and not is_persons)


def _forbids_bypass(parts: Iterable[Part]) -> str | None:
    for scope, source, rules in parts:
        if scope == "enterprise" and rules.disable_bypass_permissions_mode not in (None, False, "", "enable"):
            return one_line(source)
    return None
