"""Loads the whole configuration from all sources.

`load` puts the parts together and returns a `Configuration`: the servers in effect with their origin,
everything that was dropped and why, policy, settings, permission rules, and a description of every problem.
Loading starts nothing, connects nowhere, and never fails because of a file.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, structs

from dragoman import paths
from dragoman.config import approval, policy, policy_files
from dragoman.config.all_files import Reading, is_current, read_parts
from dragoman.config.combined_settings import (
    PermissionPart,
    choices_of,
    chosen_names,
    connectors_of,
    disabled_server_names,
    effective_rules,
    environment_of,
    names_without_effect,
    settings_of,
    xaa_idp_of,
)
from dragoman.config.expand import expand_entry, guesses, variables_in
from dragoman.config.files import FileSettings, entry_error
from dragoman.config.merge import (
    EXCLUSIVE,
    Candidate,
    ConfiguredServer,
    Dropped,
    EntryChecks,
    check_eligibility,
    merge,
)
from dragoman.config.model import ServerConfig, checked_config, fingerprint, parse_entry
from dragoman.config.policy_subjects import as_started, subject_of
from dragoman.config.schema import ConnectorsConfig, XaaIdpConfig
from dragoman.config.scopes import CLAIMS, IN_PROJECT, MAY_TRUST, OUTSIDE_PROJECTS, Scope, Sources
from dragoman.errors import ConfigError
from dragoman.settings import Settings
from dragoman.transport_types import IN_PROCESS


class Configuration(Struct, frozen=True, kw_only=True):
    sources: Sources
    servers: Mapping[str, ConfiguredServer]
    set_aside: Mapping[str, ConfiguredServer] = {}
    """Servers that this host leaves to hosts of single accounts (`Host.for_account`)."""
    dropped: tuple[Dropped, ...]
    problems: tuple[str, ...]
    settings: Settings
    policy: policy.Policy
    permissions: tuple[PermissionPart, ...]
    """The permission rules of each scope, from the lowest scope to the highest."""
    connectors: ConnectorsConfig | None
    xaa_idp: XaaIdpConfig | None
    unconfirmed_variables: Mapping[str, Any]
    """Environment variables of the administrator's file that the person has not confirmed yet."""
    entry_checks: EntryChecks
    environ: Mapping[str, str]
    """The variables that entries may use."""
    reading: Reading = Reading()
    """The contents of the files, for the next load."""
    answers: approval.Answers = approval.Answers({}, {}, {}, None)

    @property
    def parts(self) -> tuple[FileSettings, ...]:
        return self.reading.parts

    def __repr__(self) -> str:
        return f"<Configuration of {len(self.servers)} servers>"

    @property
    def names(self) -> frozenset[str]:
        """The names of all servers in all files, used or not."""
        return frozenset(name for part in self.parts for name in part.servers)

    @property
    def chosen_names(self) -> frozenset[str]:
        """Those of them that the person, the program or the administrator chose."""
        return chosen_names(self.parts)

    @property
    def needing_approval(self) -> tuple[ConfiguredServer, ...]:
        """Entries of the project without a decision, also those that another entry replaces."""
        hidden = (
            ConfiguredServer(candidate=each.candidate, approval=self.entry_checks.approval(each.candidate))
            for each in self.dropped
            if each.why == "not approved"
        )
        seen = (server for server in self.servers.values() if server.eligibility == "pending")
        return tuple(
            server for server in (*seen, *hidden) if server.approval and server.approval.state == "pending"
        )

    def admit(self, name: str, given: object, *, scope: Scope = "dynamic") -> ConfiguredServer:
        """Whether a server that is in no file could be started: a server to be added, or an agent's own."""
        candidate = Candidate(name=name, scope=scope, source="code", given=given)
        server = ConfiguredServer(candidate=candidate)
        try:
            server = structs.replace(server, config=self.entry_checks.parse_entry(candidate))
        except ConfigError as error:
            server = structs.replace(server, error=error)
        if self.is_exclusive and scope != "enterprise":
            return structs.replace(server, eligibility="refused", reason=EXCLUSIVE)
        return check_eligibility(server, self.entry_checks)

    def narrowed(self, names: Collection[str]) -> Configuration:
        """The configuration with only these servers."""
        kept = {name: server for name, server in self.servers.items() if name in names}
        return structs.replace(self, servers=kept)

    def setting_aside(self, names: Collection[str]) -> Configuration:
        """The configuration without these servers, which are left to the hosts of single accounts."""
        kept = {name: server for name, server in self.servers.items() if name not in names}
        aside = {name: server for name, server in self.servers.items() if name in names}
        return structs.replace(self, servers=kept, set_aside=aside)

    def of_set_aside(self) -> Configuration:
        """The configuration of a host that has the servers which this one leaves out."""
        return structs.replace(self, servers=self.set_aside, set_aside={})

    def with_current_policy(self) -> Configuration:
        """This configuration; or a newly loaded one, if a file that can forbid something has changed."""
        return self if is_current(self.reading, self.sources) else load(self.sources, before=self)

    def recheck(self, server: ConfiguredServer) -> ConfiguredServer:
        """Whether a server that was configured earlier may still be started."""
        if self.is_exclusive and server.scope != "enterprise":
            return structs.replace(server, eligibility="refused", reason=EXCLUSIVE)
        approved = self.entry_checks.approval(server.candidate)
        return check_eligibility(structs.replace(server, approval=approved), self.entry_checks)

    def as_started(self, server: ConfiguredServer, config: ServerConfig) -> ServerConfig:
        """The server's entry with exactly the program that policy has admitted."""
        if self.policy.allowed is None:
            return as_started(config, self.policy)
        project = os.path.realpath(self.sources.project_root)
        return as_started(config, self.policy, subject_of(server.candidate, config, project))

    @property
    def is_exclusive(self) -> bool:
        return _is_exclusive(self.parts)


def load(
    sources: Sources, *, running: Mapping[str, str] | None = None, before: Configuration | None = None
) -> Configuration:
    """Loads the configuration.

    `running`: while a host runs, the fingerprints of its project servers by name. What differs from them
    appeared or changed by an edit, and starts only after an explicit approval. `before`: the current
    configuration of the host; for a file that cannot be read, the version in it stays in effect.
    """
    reading = read_parts(sources, before.reading if before else None)
    reading = _with_connectors(sources, reading, before)
    answers, answer_problems = approval.read_answers(
        sources.approvals_file, before.answers if before else None
    )
    environ, unconfirmed = environment_of(reading.parts, answers)
    settings = settings_of(sources, reading.parts)
    names = frozenset(name for part in reading.parts for name in part.servers)
    rules = policy_files.gather(
        map(_policy_part, reading.parts),
        broken=_refusal(reading),
        servers=chosen_names(reading.parts),
        resolve=os.path.realpath,
    )
    judge = _entry_checks(sources, reading.parts, answers, environ, rules, running)
    permissions = tuple(effective_rules(reading.parts, answers))
    merged = merge(_candidates(reading.parts), judge, exclusive=_is_exclusive(reading.parts))
    return Configuration(
        sources=sources,
        servers=merged.servers,
        dropped=merged.dropped,
        problems=(
            *_refusals(reading),
            *reading.problems,
            *answer_problems,
            *rules.problems,
            *names_without_effect(reading.parts, rules, names),
            *policy.bare_commands(rules, _ready_subjects(sources, merged.servers, rules)),
            *settings.problems,
            *(part.problem for part in permissions if part.problem),
        ),
        settings=settings,
        policy=rules,
        permissions=permissions,
        connectors=connectors_of(reading.parts),
        xaa_idp=xaa_idp_of(reading.parts, settings, environ),
        unconfirmed_variables=unconfirmed,
        entry_checks=judge,
        environ=environ,
        reading=reading,
        answers=answers,
    )


def _ready_subjects(
    sources: Sources, servers: Mapping[str, ConfiguredServer], rules: policy.Policy
) -> Iterator[policy.PolicySubject]:
    """The servers that may be started, as policy sees them, if any rule is about commands."""
    if any(rule.kind == "command" for rule in rules.denied):
        project = os.path.realpath(sources.project_root)
        for server in servers.values():
            if server.eligibility == "ready" and server.config is not None:
                yield subject_of(server.candidate, server.config, project)


ADVICE: Final = "correct the file, or ignore it for one run with --ignore-broken-settings"


def _refusal(reading: Reading) -> str | None:
    """Why nothing may be started or called; None if that is allowed."""
    if reading.broken is not None:
        return f"the managed policy cannot be read: {reading.broken}"
    return f"settings cannot be read: {reading.unreadable[0]}; {ADVICE}" if reading.unreadable else None


def _refusals(reading: Reading) -> Iterator[str]:
    if reading.broken is not None:
        yield f"policy cannot be read, so no server is started and no call is made: {reading.broken}"
    for fault in reading.unreadable:
        yield f"settings cannot be read, so no server is started and no call is made: {fault}; {ADVICE}"


def _candidates(parts: tuple[FileSettings, ...]) -> Iterator[Candidate]:
    for number, part in enumerate(parts):
        for name, given in part.servers.items():
            yield Candidate(name=name, scope=part.scope, source=part.source, given=given, part=number)


def _is_exclusive(parts: tuple[FileSettings, ...]) -> bool:
    return any(part.scope == "enterprise" and part.declares_servers for part in parts)


def _policy_part(part: FileSettings) -> policy_files.PolicyPart:
    return policy_files.PolicyPart(
        scope=part.scope,
        source=part.source,
        allowed=part.values.get("allowedMcpServers", UNSET),
        denied=part.values.get("deniedMcpServers", UNSET),
        managed_only=part.values.get("allowManagedMcpServersOnly", UNSET),
        environment=part.values.get("allowedMcpEnvironment", ()),
    )


def _entry_checks(
    sources: Sources,
    parts: tuple[FileSettings, ...],
    answers: approval.Answers,
    environ: Mapping[str, str],
    rules: policy.Policy,
    running: Mapping[str, str] | None,
) -> EntryChecks:
    choices = choices_of(parts)
    off = disabled_server_names(parts)
    project = os.path.realpath(sources.project_root)

    def approve(candidate: Candidate) -> approval.Approval | None:
        if candidate.scope not in IN_PROJECT:
            return None
        file = Path(candidate.source)
        answer = answers.of(file, candidate.name)
        changed = running is not None and running.get(candidate.name) != fingerprint(candidate.given)
        live = changed or answers.is_unknown(file, candidate.name)
        return approval.decide(candidate.scope, candidate.name, candidate.given, answer, choices, live=live)

    def parse(candidate: Candidate) -> ServerConfig:
        part = parts[candidate.part] if candidate.part < len(parts) else None
        part = part if part is not None and part.source == candidate.source else None
        try:
            config = understand_given(candidate, environ)
        except ConfigError as error:
            raise without_values(entry_error(part, candidate.name, error), candidate.given, environ) from None
        return _without_claimed_trust(_in_its_folder(config, candidate, part, sources), candidate.scope)

    def judge(candidate: Candidate, config: ServerConfig | None) -> policy.PolicyVerdict:
        if not (rules.broken or rules.denied or rules.allowed is not None):
            # No rule about commands: the program that would be started need not be determined.
            return policy.judge(rules, subject_of(candidate, None, project))
        config = config or _guessed(candidate, environ)
        return policy.judge(rules, subject_of(candidate, config, project))

    return EntryChecks(approval=approve, parse_entry=parse, policy=judge, disabled_by=off.get)


def _in_its_folder(
    config: ServerConfig, candidate: Candidate, part: FileSettings | None, sources: Sources
) -> ServerConfig:
    """The entry with its folder. A project's server, or its helper, starts in the project's folder, wherever
    the host was started. A server of the person, a plugin or the administrator starts in its own folder
    unless its entry names another: a program such as npx runs code of the folder it is started in, and that
    may be any repository."""
    folder = None if part is None else _start_of(part, sources)
    if isinstance(folder, Path) and (config.transport.starts_command or config.headers_helper is not None):
        return structs.replace(config, cwd=os.path.join(folder, config.cwd or ""))
    if folder == "own" and config.transport.starts_command and config.cwd is None:
        return structs.replace(config, cwd=str(paths.server_folder(candidate.name)))
    return config


def _start_of(part: FileSettings, sources: Sources) -> Path | Literal["own"] | None:
    if part.path is None:
        return sources.given_in if part.scope == "dynamic" else None
    if part.scope in IN_PROJECT:
        return Sources.project_root_of(part.path)
    return "own" if part.scope in OUTSIDE_PROJECTS else None


def _without_claimed_trust(config: ServerConfig, scope: Scope) -> ServerConfig:
    """The entry without `trusted`, which a project, a plugin or a connector list cannot set for its own
    servers."""
    if scope in MAY_TRUST:
        return config
    for field, claimed, instead in CLAIMS:
        if getattr(config, field) == claimed:
            config = structs.replace(config, **{field: instead})
    return config


def without_values(error: ConfigError, given: object, environ: Mapping[str, str]) -> ConfigError:
    """The error with variables in place of their values."""
    text = str(error)
    for name in variables_in(given, optional=True):
        if len(value := environ.get(name, "")) > 2:
            text = text.replace(value, f"${{{name}}}")
    error.args = (text,)
    return error


def understand_given(candidate: Candidate, environ: Mapping[str, str]) -> ServerConfig:
    """The entry with its variables expanded; a server object is unchanged."""
    name, given = candidate.name, candidate.given
    if isinstance(given, ServerConfig):
        return checked_config(name, given)
    if isinstance(given, Mapping):
        return parse_entry(name, expand_entry(name, cast("Mapping[str, Any]", given), environ))
    if candidate.scope == "dynamic" and not (given is None or isinstance(given, str | int | float | list)):
        return ServerConfig(type=IN_PROCESS)
    raise ConfigError(
        f"server {name!r}: the entry must be an object", hint='Write {"command": …} or {"url": …}.'
    )


def _guessed(candidate: Candidate, environ: Mapping[str, str]) -> ServerConfig | None:
    """Possible meanings of an entry whose variables are not all set: policy checks those too."""
    for guess in guesses(candidate.given, environ):
        try:
            return understand_given(candidate, guess)
        except ConfigError:
            continue
    return None


def _with_connectors(sources: Sources, reading: Reading, before: Configuration | None) -> Reading:
    """Adds the organisation's list as last fetched, with the lowest precedence."""
    config = connectors_of(reading.parts)
    if config is None or sources.only_given:
        return reading
    from dragoman.config.connectors import read_cache

    cached = read_cache(sources.connectors_cache, config)
    part = FileSettings(scope="connectors", source=cached.source, servers=cached.servers)
    if not cached.is_readable and before is not None:
        part = next((known for known in before.parts if known.source == cached.source), part)
    problems = (*reading.problems, *([cached.problem] if cached.problem else []))
    return structs.replace(reading, parts=(part, *reading.parts), problems=problems)


def path_of(configuration: Configuration, server: ConfiguredServer) -> Path | None:
    parts = configuration.parts
    return parts[server.candidate.part].path if server.candidate.part < len(parts) else None
