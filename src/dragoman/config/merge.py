"""Computes the servers in effect from the entries of all scopes. Pure.

Decides which entry is used if several have the same name or start the same server, and records each entry
that is not used, with the reason. Checks of single entries (approval, policy, disabled, readable) are passed
in as functions.

The order: exclusive → approval → names → policy → disabled → duplicates. An entry of a project that is not
approved replaces no other entry: a cloned repository cannot replace a person's own server.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, cast

from msgspec import Struct, structs

from dragoman.cleaning import one_line
from dragoman.config.approval import Approval
from dragoman.config.model import ServerConfig, entry_warnings
from dragoman.config.policy import PolicyVerdict
from dragoman.config.scopes import CLAIMS, MAY_TRUST, OUTSIDE_PROJECTS, SCOPES, Scope
from dragoman.errors import ConfigError

Eligibility = Literal["ready", "pending", "rejected", "disabled", "refused", "broken"]
Why = Literal["exclusive", "replaced", "duplicate", "not approved"]

EXCLUSIVE: Final = "the administrator's file declares servers, and then no others are used"

_RANK: Final = {scope: number for number, scope in enumerate(SCOPES)}


class Candidate(Struct, frozen=True, kw_only=True):
    """An entry that may become a server."""

    name: str
    scope: Scope
    source: str
    given: object
    """The entry as written; from code also a `ServerConfig` or a server object."""
    part: int = 0
    """The index of its part: within a scope, a later part is nearer and wins."""

    def __repr__(self) -> str:
        return f"<Candidate {self.name!r} of {self.origin}>"

    @property
    def origin(self) -> str:
        return f"{self.scope} ({self.source})"

    @property
    def claim(self) -> tuple[int, int]:
        return _RANK[self.scope], self.part


class Dropped(Struct, frozen=True, kw_only=True):
    """An entry that is not used, and why."""

    candidate: Candidate
    why: Why
    text: str
    """The reason as text."""
    kept: Candidate | None = None
    """The server it is a duplicate of."""


class ConfiguredServer(Struct, frozen=True, kw_only=True):
    """A server in effect: where it comes from, and whether it may be started."""

    candidate: Candidate
    eligibility: Eligibility = "ready"
    reason: str | None = None
    """Why it may not be started, or what allowed it."""
    config: ServerConfig | None = None
    """The parsed entry with variables expanded; None if that was not possible or not requested."""
    error: ConfigError | None = None
    approval: Approval | None = None
    replaced: tuple[Candidate, ...] = ()
    """Entries of the same name that are not used because of it."""

    @property
    def name(self) -> str:
        return self.candidate.name

    @property
    def scope(self) -> Scope:
        return self.candidate.scope

    @property
    def source(self) -> str:
        return self.candidate.source

    @property
    def warnings(self) -> tuple[str, ...]:
        """Descriptions of fields of the entry that have no effect."""
        given = self.candidate.given
        entry: Mapping[str, Any] = cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}
        if isinstance(given, ServerConfig):
            entry = given.unknown
        warnings = entry_warnings(entry)
        if self.scope in MAY_TRUST:
            return warnings
        where = "it applies only in your own settings, in code and in the administrator's file"
        claimed = [
            field if value is True else f"{field}: {value}"
            for field, value, _ in CLAIMS
            if entry.get(field) == value
        ]
        return (*warnings, *(f"{each} has no effect in scope {self.scope}: {where}" for each in claimed))

    @property
    def fault_before_approval(self) -> str | None:
        """Why an entry without approval could not be started even with it."""
        if self.error is None or self.approval is None or self.approval.state != "pending":
            return None
        return f"even with approval it cannot be started: {one_line(str(self.error), 500)}"


class EntryChecks(Struct, frozen=True, kw_only=True):
    """The checks of single entries."""

    approval: Callable[[Candidate], Approval | None]
    """The approval of an entry; None: it needs none."""
    parse_entry: Callable[[Candidate], ServerConfig]
    """Parses an entry. May raise `ConfigError`."""
    policy: Callable[[Candidate, ServerConfig | None], PolicyVerdict]
    """Decides about an entry; without a config, by the name of an entry that could not be parsed."""
    disabled_by: Callable[[str], str | None]
    """The source that disables a server, if any."""


class Merged(Struct, frozen=True):
    servers: Mapping[str, ConfiguredServer]
    dropped: tuple[Dropped, ...]


def merge(candidates: Iterable[Candidate], judge: EntryChecks, *, exclusive: bool) -> Merged:
    dropped: list[Dropped] = []
    remaining = _exclude(candidates, dropped) if exclusive else list(candidates)
    claims = [
        ConfiguredServer(candidate=candidate, approval=judge.approval(candidate)) for candidate in remaining
    ]
    by_name = _one_per_name(claims, dropped)
    servers = [_parsed(server, judge) for server in by_name]
    servers = _without_duplicates(servers, dropped)
    return Merged({server.name: server for server in servers}, tuple(dropped))


def check_eligibility(server: ConfiguredServer, judge: EntryChecks) -> ConfiguredServer:
    """Whether a server may be started, and why not. Checked before every start."""
    verdict = judge.policy(server.candidate, server.config)
    if not verdict.allowed:
        return structs.replace(server, eligibility="refused", reason=verdict.reason)
    if off := judge.disabled_by(server.name):
        return structs.replace(server, eligibility="disabled", reason=f"disabled in {off}")
    if _is_disabled_by_entry(server):
        reason = f"disabled by its entry in {server.source}"
        return structs.replace(server, eligibility="disabled", reason=reason)
    if server.approval is not None and server.approval.state != "approved":
        return structs.replace(server, eligibility=server.approval.state, reason=server.approval.reason)
    if server.error is not None:
        return structs.replace(server, eligibility="broken", reason=str(server.error))
    return server


def _is_disabled_by_entry(server: ConfiguredServer) -> bool:
    """Also for an entry that cannot be parsed: a person who disables it need not correct it first."""
    if server.config is not None:
        return server.config.disabled or not server.config.enabled
    given = server.candidate.given
    if not isinstance(given, Mapping):
        return False
    entry = cast("Mapping[str, object]", given)
    return entry.get("disabled") is True or entry.get("enabled") is False


def _exclude(candidates: Iterable[Candidate], dropped: list[Dropped]) -> list[Candidate]:
    kept: list[Candidate] = []
    for candidate in candidates:
        if candidate.scope == "enterprise":
            kept.append(candidate)
        else:
            dropped.append(Dropped(candidate=candidate, why="exclusive", text=EXCLUSIVE))
    return kept


def _one_per_name(claims: Sequence[ConfiguredServer], dropped: list[Dropped]) -> list[ConfiguredServer]:
    """One server for each name, in the order in which the names first appear."""
    groups: dict[str, list[ConfiguredServer]] = {}
    for claim in claims:
        groups.setdefault(claim.name, []).append(claim)
    return [_winner(group, dropped) for group in groups.values()]


def _winner(group: list[ConfiguredServer], dropped: list[Dropped]) -> ConfiguredServer:
    best, *others = sorted(group, key=_strength, reverse=True)
    for other in others:
        if other.approval is None or other.approval.state == "approved":
            text = f"replaced by the entry of {best.candidate.origin}"
            dropped.append(Dropped(candidate=other.candidate, why="replaced", text=text))
        else:
            reason = other.approval.reason if other.approval else ""
            text = f"{reason}; the entry of {best.candidate.origin} is used"
            dropped.append(Dropped(candidate=other.candidate, why="not approved", text=text))
    return structs.replace(best, replaced=tuple(other.candidate for other in others))


def _strength(claim: ConfiguredServer) -> tuple[int, tuple[int, int]]:
    """The precedence by approval: approved entries first, rejected ones last, so that they hide nothing that
    could still be approved."""
    state = "approved" if claim.approval is None else claim.approval.state
    return ("rejected", "pending", "approved").index(state), claim.candidate.claim


def _parsed(server: ConfiguredServer, judge: EntryChecks) -> ConfiguredServer:
    try:
        server = structs.replace(server, config=judge.parse_entry(server.candidate))
    except ConfigError as error:
        # Without its traceback, and that of the error it came from: they would keep all their frames.
        error.__context__ = None
        server = structs.replace(server, error=error.with_traceback(None))
    return check_eligibility(server, judge)


def _duplicate_rank(server: ConfiguredServer) -> tuple[bool, object]:
    scope = server.candidate.scope
    return scope in OUTSIDE_PROJECTS or scope == "dynamic", server.candidate.claim


def _without_duplicates(
    servers: Sequence[ConfiguredServer], dropped: list[Dropped]
) -> list[ConfiguredServer]:
    """Removes duplicates. Only servers that would run are duplicates of one another; the one of the higher
    scope stays. A project's server never replaces one outside the project: rules and hooks that name the
    other would no longer apply.

    Two equal servers in one file are both kept: they may be the same program for two accounts.
    """
    first: dict[tuple[str, ...], ConfiguredServer] = {}
    for server in sorted(servers, key=_duplicate_rank, reverse=True):
        signature = server.config.signature if server.config and server.eligibility == "ready" else None
        if signature is None:
            continue
        kept = first.setdefault(signature, server)
        if kept is not server and kept.candidate.part != server.candidate.part:
            text = f"the same server as {kept.name!r} of {kept.candidate.origin}"
            dropped.append(
                Dropped(candidate=server.candidate, why="duplicate", text=text, kept=kept.candidate)
            )
    gone = {id(each.candidate) for each in dropped}
    return [server for server in servers if id(server.candidate) not in gone]
