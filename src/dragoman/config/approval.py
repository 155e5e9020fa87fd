"""Approval of entries that came with a project or a plugin: the decision, and the file with a person's
answers.

Answers are stored in the person's own folder. Each is bound to the project's folder and to a fingerprint of
the whole entry, or rule, as written: nothing in a project can approve itself, and after a change of an entry
the person is asked again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.config.model import fingerprint
from dragoman.config.scopes import PROJECT_FILE, Scope, Sources
from dragoman.errors import ConfigFileError
from dragoman.names import ProhibitedNames

ApprovalState = Literal["approved", "pending", "rejected"]

SERVERS: Final = "files"
RULES: Final = "rules"
AGENTS: Final = "agents"
"""The sections of the file of answers. A server may have any name, so other kinds of answers have separate
sections."""


class Choices(Struct, frozen=True, kw_only=True):
    """The choices in the person's and the administrator's settings about servers of `.mcp.json`, by name."""

    enabled: Mapping[str, str] = {}
    """Name → the file that contains the choice."""
    disabled: ProhibitedNames = ProhibitedNames({}, ())
    all_enabled_by: str | None = None


class ApprovalAnswer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A stored answer about one entry of one file."""

    decision: Literal["approved", "rejected"]
    fingerprint: str
    entry: dict[str, Any] = {}
    """The approved entry, for showing what has changed."""

    def __repr__(self) -> str:
        return f"<ApprovalAnswer {self.decision}>"


class Approval(Struct, frozen=True, kw_only=True):
    """Whether an entry may be started, and why."""

    state: ApprovalState
    reason: str
    before: Mapping[str, Any] | None = None
    """The entry that was approved earlier, where it has changed since."""
    pin: bool = False
    """Whether it was approved by name alone: the approval is bound to this entry once it is started."""

    def __repr__(self) -> str:
        return f"<Approval {self.state}: {self.reason}>"


def decide(
    scope: Scope,
    name: str,
    entry: object,
    answer: ApprovalAnswer | None,
    choices: Choices,
    *,
    live: bool = False,
) -> Approval:
    """Decides whether an entry may be started. `live`: the entry appeared or changed while a host was
    running, or an answer about it cannot be read; then only an explicit approval is valid."""
    if scope == "project" and (source := choices.disabled.get(name)) is not None:
        return Approval(state="rejected", reason=f"declined by name in {source}")
    if answer is not None and answer.fingerprint == fingerprint(entry):
        text = "you approved it" if answer.decision == "approved" else "you declined it"
        return Approval(state=answer.decision, reason=text)
    declined = answer is not None and answer.decision == "rejected"
    if scope == "project" and choices.all_enabled_by and not live and not declined:
        return Approval(state="approved", reason=f"enableAllProjectMcpServers in {choices.all_enabled_by}")
    if answer is not None:
        before = answer.entry if answer.decision == "approved" else None
        return Approval(
            state="pending", reason=f"it has changed since it was {answer.decision}", before=before
        )
    if scope == "project" and name in choices.enabled and not live:
        reason = f"approved by name in {choices.enabled[name]}"
        return Approval(state="approved", reason=reason, pin=True)
    return Approval(state="pending", reason="the project defines it, and it is not approved yet")


Rows = Mapping[str, Mapping[str, ApprovalAnswer]]
"""Answers by file, then by the name of a server or the text of a rule."""


class Answers:
    """The stored answers, read once."""

    def __init__(
        self,
        servers: Rows,
        rules: Rows,
        agents: Rows,
        variables: str | None,
        unreadable: Collection[tuple[str, ...]] = (),
    ) -> None:
        """`unreadable`: the answers about servers that could not be read, each by file and name, by file
        alone if it is all about that file, or by `()` if it is all answers."""
        self._servers = servers
        self._unreadable = frozenset(unreadable)
        self._rules = rules
        self._agents = agents
        self.confirmed_variables = variables
        """Fingerprint of the administrator's variables that the person has confirmed."""

    def of(self, file: Path | None, name: str) -> ApprovalAnswer | None:
        """The answer about a server's entry. `decide` checks whether it applies to the current entry."""
        return None if file is None else self._servers.get(key_of(file), {}).get(name)

    def is_unknown(self, file: Path | None, name: str) -> bool:
        """Whether there may be an answer about a server's entry, perhaps a refusal, that cannot be read."""
        if file is None or not self._unreadable:
            return False
        key = key_of(file)
        return not self._unreadable.isdisjoint(((), (key,), (key, name)))

    def approves_rule(self, file: Path | None, rule: str) -> bool:
        """Whether the person wrote this allow rule into this file through Dragoman."""
        answer = None if file is None else self._rules.get(key_of(file), {}).get(rule)
        if answer is None or answer.decision != "approved":
            return False
        return answer.fingerprint == fingerprint(_as_entry(rule))

    def approves_agent(self, file: Path, digest: str) -> bool:
        """Whether the person approved the file of an agent with exactly this content."""
        answer = self._agents.get(_key_of_agent(file), {}).get(file.name)
        if answer is None or answer.decision != "approved":
            return False
        return answer.fingerprint == fingerprint({"sha256": digest})


def key_of(file: Path) -> str:
    """The key of a file's answers: the resolved folder its servers start in, and the file's place there.

    The targets of links inside the project are not part of it: an answer never applies to another folder.
    """
    root = Sources.project_root_of(file)
    return os.path.join(root, file.name if file.name == PROJECT_FILE else f"{file.parent.name}/{file.name}")


def _key_of_agent(file: Path) -> str:
    """The key for the file of an agent, `.dragoman/agents/NAME.md`: a link in place of `.dragoman` does not
    lead to the answers about another folder."""
    return os.path.join(os.path.realpath(file.parents[2]), *file.parts[-3:])


def read_answers(path: Path, before: Answers | None = None) -> tuple[Answers, tuple[str, ...]]:
    """Reads the answers, and the problems. An answer that cannot be read, and was not read before, approves
    nothing; as it may have been a refusal, settings do not approve its server either."""
    from dragoman.config.file_reading import check_reachable, read_object

    try:
        check_reachable(path)
        read = read_object(path)
    except ConfigFileError as error:
        if before is not None:
            return before, (f"{error}; the answers read before stay in effect",)
        return Answers({}, {}, {}, None, [()]), (f"{error}; no approval is taken from it",)
    document = read[1] if read else {}
    problems: list[str] = []
    unreadable: dict[str, list[tuple[str, ...]]] = {SERVERS: [], RULES: [], AGENTS: []}
    servers, rules, agents = (
        _rows(path, document.get(section), problems, places) for section, places in unreadable.items()
    )
    variables = document.get("managedVariables")
    confirmed = variables if isinstance(variables, str) else None
    return Answers(servers, rules, agents, confirmed, unreadable[SERVERS]), tuple(problems)


def _rows(path: Path, section: Any, problems: list[str], unreadable: list[tuple[str, ...]]) -> Rows:
    by_file: dict[str, dict[str, ApprovalAnswer]] = {}
    if not isinstance(section, dict | None):
        unreadable.append(())
        problems.append(f"{path}: a part of the answers cannot be read and is not used")
    for file, rows in _items(section):
        if not isinstance(rows, dict):
            unreadable.append((file,))
            problems.append(f"{path}: the answers about {file!r} cannot be read and are not used")
        for name, row in _items(rows):
            try:
                by_file.setdefault(file, {})[name] = msgspec.convert(row, ApprovalAnswer)
            except msgspec.ValidationError:
                unreadable.append((file, name))
                problems.append(f"{path}: the answer about {name!r} cannot be read and is not used")
    return by_file


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", value).items()) if isinstance(value, dict) else []


def remember(path: Path, file: Path, name: str, entry: object, decision: str) -> None:
    """Stores an answer about a server's entry."""
    _remember(path, SERVERS, key_of(file), name, entry, decision)


def remember_rule(path: Path, file: Path, rule: str) -> None:
    """Stores that the person wrote an allow rule into a file."""
    _remember(path, RULES, key_of(file), rule, _as_entry(rule), "approved")


def _remember(path: Path, section: str, key: str, name: str, entry: object, decision: str) -> None:
    shown = dict(cast("Mapping[str, Any]", entry)) if isinstance(entry, Mapping) else {}
    row = {"decision": decision, "fingerprint": fingerprint(entry), "entry": shown}

    def change(document: dict[str, Any]) -> dict[str, Any]:
        files: dict[str, Any] = dict(_items(document.get(section)))
        rows = dict(_items(files.get(key)))
        return {**document, section: {**files, key: {**rows, name: row}}}

    _edit(path, change)


def remember_agent(path: Path, file: Path, digest: str) -> None:
    """Stores that the person approved the file of an agent, with this content."""
    _remember(path, AGENTS, _key_of_agent(file), file.name, {"sha256": digest}, "approved")


def forget(path: Path, files: tuple[Path, ...], name: str) -> int:
    """Deletes the answers about a server in some files; returns how many."""
    return _forget(path, (SERVERS,), files, name)


def forget_rule(path: Path, file: Path, rule: str) -> int:
    """Deletes the answer about an allow rule in a file; returns how many there were."""
    return _forget(path, (RULES,), (file,), rule)


def forget_all(path: Path, files: tuple[Path, ...], agent_folders: tuple[Path, ...] = ()) -> int:
    """Deletes every answer about some files, and about agents in some folders; returns how many."""
    return _forget(path, (SERVERS, RULES, AGENTS), files, None, agent_folders)


def _forget(
    path: Path,
    sections: tuple[str, ...],
    files: tuple[Path, ...],
    name: str | None,
    agent_folders: tuple[Path, ...] = (),
) -> int:
    dropped = 0
    keys = {key_of(file) for file in files}
    # By their folder: the file of an agent may be missing, and be restored by the next checkout.
    folders = {os.path.dirname(_key_of_agent(folder / "any")) for folder in agent_folders}

    def is_dropped(file: str, key: str) -> bool:
        return (file in keys or os.path.dirname(file) in folders) and name in (None, key)

    def change(document: dict[str, Any]) -> dict[str, Any]:
        nonlocal dropped
        kept = {section: _items(document.get(section)) for section in sections if section in document}
        for section, rows in kept.items():
            stay = {
                file: {key: row for key, row in _items(of_file) if not is_dropped(file, key)}
                for file, of_file in rows
            }
            dropped += sum(len(_items(of_file)) for _, of_file in rows) - sum(map(len, stay.values()))
            document = {**document, section: {file: of_file for file, of_file in stay.items() if of_file}}
        return document

    _edit(path, change)
    return dropped


def _as_entry(rule: str) -> dict[str, str]:
    """The value whose fingerprint identifies an allow rule."""
    return {"allow": rule}


def confirm_variables(path: Path, variables: Mapping[str, Any]) -> None:
    """Stores the person's confirmation of the variables that the administrator's file sets."""
    _edit(path, lambda document: {**document, "managedVariables": fingerprint(variables)})


def _edit(path: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    from dragoman.config.writer import edit_state

    edit_state(path, change)
