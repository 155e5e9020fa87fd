"""Permission rules, hooks and the audit log of a host, built from configuration and updated when it changes.

`permissions/` decides, `hooks/` runs hooks, and `calls/audit.py` writes the audit log.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct, ValidationError, convert, structs

from dragoman import paths
from dragoman.calls.audit import AuditLog
from dragoman.catalog.tools import BuiltinTool
from dragoman.cleaning import one_line
from dragoman.config.load import Configuration, load
from dragoman.config.rule_edits import add_rule
from dragoman.config.schema import PermissionRules
from dragoman.config.scopes import Sources
from dragoman.errors import ConfigError, DragomanError
from dragoman.events import (
    ConfigurationChanged,
    Event,
    EventBus,
    EventStream,
    PermissionModeChanged,
    ServerConnected,
    ServerFailed,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.hooks.active import ActiveHooks, HookSession
from dragoman.hooks.configured import from_parts
from dragoman.hooks.declared import Hook
from dragoman.hooks.events import CONNECTION_EVENTS
from dragoman.interaction import Interaction
from dragoman.permissions.checker import Deciders, PermissionChecker, names_of
from dragoman.permissions.classifier import ByAnnotations, Classifier
from dragoman.permissions.modes import MODES, PermissionMode, effective
from dragoman.permissions.rules import Behaviour, Rulebook, without_effect
from dragoman.permissions.rules import parse as parse_rule
from dragoman.permissions.shell.script import NO_PARSER, has_parser
from dragoman.permissions.subject_form import fault_of_name
from dragoman.questions import Questions

HOOKS_END_SECONDS: Final = 5.0


class EffectiveRules(NamedTuple):
    """The permission rules that are in effect, combined from all sources."""

    book: Rulebook
    mode: PermissionMode
    problems: tuple[str, ...]

    @staticmethod
    def of(
        configuration: Configuration,
        in_code: PermissionRules | None = None,
        wanted: PermissionMode | None = None,
    ) -> EffectiveRules:
        """Combines the rules. `in_code`: rules of the program; `wanted`: the mode that it requests."""
        parts = [(part.scope, part.source, part.rules) for part in configuration.permissions]
        if in_code is not None:
            parts.append(("dynamic", "code", in_code))
        book = Rulebook.of(parts, servers=configuration.names, chosen=configuration.chosen_names)
        book = _refusing(book, configuration.policy.broken)
        mode, problem = effective(wanted, parts, asked_in_code=wanted is not None)
        found = (problem, _without_parser(book))
        return EffectiveRules(book, mode, (*book.problems, *(each for each in found if each)))


def _without_parser(book: Rulebook) -> str | None:
    """Adapts the rules for shell commands to a system on which commands cannot be parsed."""
    rule = next((rule for rule in book.rules if rule.shell is not None), None)
    if rule is None or has_parser():
        return None
    return f"{rule.description}: {NO_PARSER}; until then deny and ask rules for Bash apply to every command"


def _refusing(book: Rulebook, reason: str | None) -> Rulebook:
    """Rules that refuse every call, for the case that the prohibitions in the files cannot be read."""
    if reason is None:
        return book
    everything = parse_rule("*", "deny", scope="enterprise", source="files that cannot be read")
    return Rulebook(
        (structs.replace(everything, description=one_line(reason, 500)), *book.rules), book.problems
    )


def _checked_hooks(hooks: Sequence[object]) -> tuple[Hook, ...]:
    found: list[Hook] = []
    for each in hooks:
        if not isinstance(each, Hook):
            what = getattr(each, "__name__", type(each).__name__)
            raise ConfigError(
                f"hooks: {one_line(str(what), 80)} is not a hook",
                hint='Make one of it: `hook(function, "PreToolUse")`, from `dragoman`.',
            )
        found.append(each)
    return tuple(found)


class AccessOptions(Struct, frozen=True, kw_only=True):
    """Access options that a program passes, in addition to the configuration files."""

    mode: PermissionMode | None = None
    rules: Mapping[str, Any] | PermissionRules | None = None
    hooks: Sequence[Hook] = ()
    classifier: Classifier | None = None
    interaction: Interaction | None = None
    audit: bool = False
    session_hooks: bool = True


class AccessControl:
    def __init__(
        self,
        configuration: Configuration,
        options: AccessOptions,
        bus: EventBus,
        is_trusted: Callable[[str], bool],
        reloading: asyncio.Lock,
    ) -> None:
        """`is_trusted`: by server. `reloading`: held while configuration is read and adopted."""
        self._reloading = reloading
        self._wanted: PermissionMode | None = _checked_mode(options.mode)
        self._rules = rules_in_code(options.rules)
        self._hooks_in_code = _checked_hooks(options.hooks)
        self._runs_session_hooks = options.session_hooks
        self._bus = bus
        self._configuration = configuration
        self._hook_task: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._events: EventStream | None = None
        self.session_id = os.urandom(8).hex()
        self._context: tuple[str, ...] = ()
        """The context for a model that `SessionStart` hooks return."""
        found, declared = self._read(configuration)
        if options.mode is not None and found.mode != options.mode:
            raise ConfigError(found.problems[-1], hint="Use another permission_mode.")
        self.hooks = ActiveHooks(
            declared,
            HookSession(self.session_id, str(configuration.sources.cwd), lambda: self.permissions.mode),
            names_of,
            bus.publish,
        )
        self.questions = Questions(options.interaction)
        self.permissions = PermissionChecker(
            found.book,
            found.mode,
            Deciders(options.classifier or ByAnnotations(is_trusted), self.hooks, self.questions),
            bus,
            keep=None if configuration.sources.only_given else self._keep,
        )
        self.audit = (
            AuditLog(paths.logs_dir(), self.report_problem, self.session_id) if options.audit else None
        )

    # Following configuration.

    def adopt(self, configuration: Configuration) -> None:
        """Applies the current configuration."""
        self._configuration = configuration
        rules, declared = self._read(configuration)
        self._adopt_rules(rules)
        self.hooks.replace(declared)
        if self._hook_task is not None or self._wants_connection_events:
            self.listen()

    def set_mode(self, mode: PermissionMode) -> None:
        """Sets the permission mode, also for calls that wait for a decision. It takes precedence over
        `defaultMode` of files. Raises `ConfigError` if the administrator forbids it."""
        rules = EffectiveRules.of(self._configuration, self._rules, _checked_mode(mode))
        if rules.mode != mode:
            raise ConfigError(rules.problems[-1], hint="Use another permission mode.")
        self._wanted = mode
        self._adopt_rules(rules)

    def add_rule(self, kind: Behaviour, rule: str) -> None:
        """Adds a rule for as long as this host runs. Raises `ConfigError` if it cannot be read."""
        now = self._rules or PermissionRules()
        if rule not in getattr(now, kind):
            self._set_rules(structs.replace(now, **{kind: (*getattr(now, kind), rule)}))

    def remove_rule(self, kind: Behaviour, rule: str) -> bool:
        """Removes a rule that the program has added; returns false if there is none."""
        now = self._rules or PermissionRules()
        left = tuple(each for each in getattr(now, kind) if each != rule)
        if len(left) == len(getattr(now, kind)):
            return False
        self._set_rules(structs.replace(now, **{kind: left}))
        return True

    def _set_rules(self, rules: PermissionRules) -> None:
        self._rules = rules_in_code(rules)
        self._adopt_rules(EffectiveRules.of(self._configuration, self._rules, self._wanted))

    def _adopt_rules(self, rules: EffectiveRules) -> None:
        before = self.permissions.mode
        self.permissions.adopt(rules.book, rules.mode)
        if rules.mode != before:
            self._bus.publish(PermissionModeChanged(mode=rules.mode, before=before))

    def _read(self, configuration: Configuration) -> tuple[EffectiveRules, tuple[Hook, ...]]:
        rules = EffectiveRules.of(configuration, self._rules, self._wanted)
        configured = from_parts(configuration.parts, configuration.environ, fault_of_name)
        declared = (*self._hooks_in_code, *configured.hooks)
        self._wants_connection_events = any(hook.event in CONNECTION_EVENTS for hook in declared)
        self.problems = (*rules.problems, *configured.problems)
        """Problems: the permission rules and hooks in files that cannot be used."""
        return rules, declared

    async def _keep(self, scope: str, rule: str) -> None:
        """Writes an allow rule, and applies it from now on."""
        try:
            known = self._configuration
            await asyncio.to_thread(_write_rule, known.sources, scope, rule)
            async with self._reloading:  # keeps the order of reading and adopting
                configuration = await asyncio.to_thread(load, known.sources, before=self._configuration)
                self._configuration = configuration
                self._adopt_rules(EffectiveRules.of(configuration, self._rules, self._wanted))
        except (DragomanError, OSError) as error:
            self.report_problem(f"the rule could not be saved: {error}")

    # Opening and closing.

    def start(self) -> None:
        """Notifies hooks that a session begins; servers are connected meanwhile."""
        if self._wants_connection_events:
            self.listen()
        if self._runs_session_hooks and self.hooks.wants("SessionStart", "startup"):
            self._starting = asyncio.create_task(self._begin(), name="dragoman session start")

    async def _begin(self) -> None:
        self._context = await self.hooks.notify("SessionStart", {"source": "startup"})

    async def session_context(self) -> tuple[str, ...]:
        """The texts of `SessionStart` hooks for a model. Waits until those hooks have ended."""
        if self._starting is not None:
            await asyncio.wait([self._starting])
        return self._context

    def listen(self) -> None:
        """Starts to notify hooks of connection events."""
        if self._hook_task is None:
            self._events = self._bus.listen(ServerConnected, ServerFailed, ServerStateChanged, ToolsChanged)
            self._hook_task = asyncio.create_task(self._notify_hooks(self._events), name="dragoman hooks")

    async def close(self) -> None:
        """Ends all questions. Hooks that are running have up to HOOKS_END_SECONDS to finish."""
        self.questions.close()
        if self._events is not None:
            await self._events.aclose()
        tasks = [task for task in (self._hook_task, self._starting) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=HOOKS_END_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if self._runs_session_hooks and self.hooks.wants("SessionEnd", "close"):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOOKS_END_SECONDS):
                    await self.hooks.notify("SessionEnd", {"reason": "close"})
        await self.hooks.close()
        if self.audit is not None:
            await asyncio.to_thread(self.audit.close)

    async def _notify_hooks(self, events: EventStream) -> None:
        """Runs the hooks of an event. While the hooks of a server's event run, only the latest event of that
        server waits, so that a server that changes or fails constantly cannot start more and more
        programs."""
        waiting: dict[tuple[str, str], dict[str, Any]] = {}
        running: set[tuple[str, str]] = set()

        async def notify(key: tuple[str, str]) -> None:
            while (facts := waiting.pop(key, None)) is not None:
                await self.hooks.notify(key[0], facts)
            running.discard(key)

        async with asyncio.TaskGroup() as tasks:
            async for event in events:
                name, facts = _as_hook_event(event) or ("", {})
                if name and self.hooks.wants(name, server := facts["mcp_server_name"]):
                    earlier = waiting.get((name, server), {})
                    if "changed" in earlier:  # no changed tool is left out
                        facts["changed"] = tuple(dict.fromkeys([*earlier["changed"], *facts["changed"]]))
                    waiting[name, server] = facts
                    if (name, server) not in running:
                        running.add((name, server))
                        tasks.create_task(notify((name, server)))

    def report_rules_without_effect(self, tools: Iterable[BuiltinTool]) -> None:
        arguments = {
            str(tool.name): (
                *tool.input_schema.get("properties", ()),
                *(tool.by_other_names({}) if tool.by_other_names is not None else ()),
            )
            for tool in tools
        }
        if problems := tuple(without_effect(self.permissions.rules, arguments)):
            self._bus.publish(ConfigurationChanged(problems=problems))

    def report_problem(self, problem: str) -> None:
        self._bus.publish(ConfigurationChanged(problems=(problem,)))


def _checked_mode(mode: PermissionMode | None) -> PermissionMode | None:
    if mode is not None and mode not in MODES:
        raise ConfigError(f"unknown permission_mode {mode!r}", hint=f"One of {', '.join(MODES)}.")
    return mode


def rules_in_code(rules: Mapping[str, Any] | PermissionRules | None) -> PermissionRules | None:
    """Parses the rules of a program. Unlike in files, a rule that cannot be parsed is an error."""
    if rules is None:
        return None
    if not isinstance(rules, PermissionRules):
        unknown = rules.keys() - {"allow", "ask", "deny"}
        if unknown:
            raise ConfigError(f"rules: unknown key {sorted(unknown)[0]!r}", hint="One of allow, ask, deny.")
        allow, ask, deny = (_rule_texts(rules, kind) for kind in ("allow", "ask", "deny"))
        rules = PermissionRules(allow, ask, deny)
    problems = Rulebook.of([("dynamic", "code", rules)]).problems
    if problems:
        raise ConfigError(problems[0].partition("; ")[0])
    return rules


def _rule_texts(rules: Mapping[str, Any], kind: Behaviour) -> tuple[str, ...]:
    try:
        return convert(rules.get(kind, ()), tuple[str, ...])
    except ValidationError:
        hint = 'For example ["mcp__files"].'
        raise ConfigError(f"rules: {kind!r} must be a list of strings", hint=hint) from None


def _write_rule(sources: Sources, scope: str, rule: str) -> None:
    if scope not in ("user", "local"):
        raise ConfigError(f"no rules are kept in scope {scope!r}")
    add_rule(sources, scope, "allow", rule)


def _as_hook_event(event: Event) -> tuple[str, dict[str, Any]] | None:
    """Converts a connection event to the hook event of `hooks/events.py`."""
    match event:
        case ServerConnected():
            more: dict[str, Any] = {"protocol_version": event.protocol_version}
            name = "ServerConnected"
        case ServerFailed():
            name, more = "ServerFailed", {"reason": event.reason, "hint": event.hint}
        case ServerStateChanged(status="needs-auth"):
            name, more = "NeedsAuth", {"reason": event.reason or ""}
        case ToolsChanged():
            name = "ToolsChanged"
            more = {"tool_count": event.tool_count, "changed": event.changed, "problems": event.problems}
        case _:
            return None
    return name, {"mcp_server_name": event.server, **more}
