"""Policy: which servers may be used at all. Pure.

Contains allow and deny lists, their meaning for one server, and the reason for a person. Other modules read
the files, find the executable of a command and act on the verdict; `judge` is called before each start or
connection with exactly what is about to be started or connected to.

A deny rule takes precedence over everything, and deny rules of every scope count. Allow rules count from the
administrator and the person only, never from a folder. A rule that cannot be understood never admits a
server, and affects no other rule. No content of a file raises an exception here.

Names, URLs and the words of a command may contain `*` for any run of characters; no other character is
special. An allow list compares names exactly, a deny list as deny rules do (`names.may_mean_server`). A name
does not prove which server uses it: as soon as an allow list contains one `serverUrl` entry, names no longer
admit remote servers, and likewise for `serverCommand` and stdio servers.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal, cast

from msgspec import UNSET, Struct, structs

from dragoman.cleaning import fold, one_line
from dragoman.config.masking import masked_name
from dragoman.config.model import PROBLEM_LIMIT
from dragoman.errors import ConfigError
from dragoman.names import may_mean_server, separate_names
from dragoman.transport_types import TRANSPORT_TYPES, transport_type
from dragoman.urls import ServerUrl, UrlPattern, matches, parse_pattern, parse_url
from dragoman.wildcards import fits

ALLOWED: Final = "allowedMcpServers"
ENVIRONMENT: Final = "allowedMcpEnvironment"
DENIED: Final = "deniedMcpServers"

LOADER_VARIABLES: Final = (
    *(
        "PATH",
        "HOME",
        "XDG_CONFIG_HOME",
        "LD_*",
        "DYLD_*",
        "GCONV_PATH",
        "ENV",
        "BASH_ENV",
        "BASH_FUNC_*",
        "GIT_*",
    ),
    *("NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_*", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PIP_*", "UV_*"),
    *("PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH", "PYTHONPLATLIBDIR", "PYTHONBREAKPOINT", "PYTHONINSPECT"),
    *("PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "NODE_COMPILE_CACHE"),
    *("DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "CORECLR_*", "COR_*", "OPENSSL_*"),
    *("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
    *("*_PROXY", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Variables, in any case, by which an ordinary program is made to run or trust something else. The approval
question warns of them."""

ADMITTED_VARIABLES: Final = (
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "DEBUG"),
    *("LOG_LEVEL", "*_LOG_LEVEL", "NODE_ENV", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8"),
    *("TOKEN", "*_TOKEN", "API_KEY", "*_API_KEY", "*_API_TOKEN", "*_ACCESS_KEY", "*_ACCESS_KEY_ID"),
    *("*_SECRET", "*_SECRET_KEY", "*_PASSWORD", "*_USERNAME", "*_EMAIL", "*_CLIENT_ID", "*_CLIENT_SECRET"),
    *("*_ACCOUNT_ID", "*_PROJECT_ID", "*_TEAM_ID", "*_ORG_ID", "*_REGION"),
)
"""Variables that an entry may set beside an allowed command: which programs take code or addresses from a
variable cannot be listed, so these are the ones known to hold credentials or the form of output. Further ones
be listed in `allowedMcpEnvironment`."""

Kind = Literal["name", "url", "command"]

_KINDS: Final[dict[str, Kind]] = {"serverName": "name", "serverUrl": "url", "serverCommand": "command"}
_MAY_ALLOW: Final = ("enterprise", "user")
_EDITORS: Final = {
    name: parse_url(row.editor_url) for name, row in TRANSPORT_TYPES.items() if row.editor_url is not None
}
"""Where servers of editors are whose entries name no URL; the port is known only when they are connected."""
_MANY_PROGRAMS: Final = frozenset({"busybox", "toybox", "coreutils"})
"""Files that are many programs, each by a link: the file does not show which is meant."""
_VARIABLE: Final = re.compile(r"\$\{[^}]*(?:\}|\Z)|\$[A-Za-z_][A-Za-z0-9_]*")


class Subject(Struct, frozen=True, kw_only=True):
    """One server as it would be reached, after expansion. Paths are absolute and normalised."""

    name: str
    scope: str
    transport: str
    url: ServerUrl | None = None
    command: tuple[str, ...] | None = None
    """The command and its arguments as written in the entry."""
    executable: str | None = None
    """The real path of what would be started; None: not found."""
    is_script: bool = False
    """Whether it is a text for the shell and not a single plain command: no rule can be compared with it."""
    found: str | None = None
    """Where the command was found, before links are followed; None: same as `executable`."""
    is_for_shell: bool = False
    """Whether the shell starts it by the words as written, so that nothing else can be started instead."""
    project: str | None = None
    """The real path of the project folder."""
    env_names: tuple[str, ...] = ()
    """Names the entry sets for the child."""
    sets_folder: bool = False
    """Whether the entry says which folder to start in."""
    helper: Subject | None = None
    """The command that prints headers, as if it were a stdio server of this name."""
    rerouting: tuple[str, ...] = ()
    """Fields of the entry by which its messages or its credentials reach another peer than the URL names."""

    def __repr__(self) -> str:
        """Arguments may hold secrets."""
        return f"<Subject {self.name!r} {self.transport} from {self.scope}>"


class Rule(Struct, frozen=True):
    """One entry of a list."""

    kind: Kind
    value: str | tuple[str, ...] | UrlPattern
    source: str
    """The file that contains it."""
    text: str
    """The entry as a person would say it."""

    def describe(self) -> str:
        return f"{self.text} in {one_line(self.source)}"


class PolicyPart(Struct, frozen=True, kw_only=True):
    """What one file says, as read."""

    scope: str
    source: str
    allowed: Any = UNSET
    denied: Any = UNSET
    managed_only: Any = UNSET
    """Only the administrator's allow list counts. Meaningful in scope `enterprise`."""
    environment: tuple[str, ...] = ()
    """Names of variables that entries may set beside an allowed command."""


class Policy(Struct, frozen=True):
    """What all files say together."""

    denied: tuple[Rule, ...] = ()
    allowed: tuple[Rule, ...] | None = None
    """None: no list restricts anything. Empty: nothing is allowed."""
    broken: str | None = None
    """Why it cannot be known what is forbidden, as a sentence. Nothing is admitted then."""
    problems: tuple[str, ...] = ()
    urls_decide: bool = False
    """Remote servers are admitted by URL only."""
    commands_decide: bool = False
    """Stdio servers are admitted by command only."""
    environment: tuple[str, ...] = ADMITTED_VARIABLES
    """Patterns for the names of variables that entries may set beside an allowed command."""


class Verdict(Struct, frozen=True):
    allowed: bool
    reason: str
    rule: Rule | None = None
    """The rule that decided, if one did."""


def loader_variables(names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that change what a program runs."""
    return tuple(name for name in names if _is_named(name, LOADER_VARIABLES))


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    return any(fits(_pieces(pattern.upper()), name.upper()) for pattern in patterns)


def gather(
    parts: Iterable[PolicyPart],
    *,
    broken: str | None = None,
    servers: Iterable[str] = (),
    resolve: Callable[[str], str] = str,
) -> Policy:
    """One policy from what the files say. What is wrong with them is in `problems`.

    `servers`: the names that the person, the program or the administrator chose; `resolve`: gives the real
    path of a path.
    """
    parts = tuple(parts)
    names = frozenset(servers)
    problems: list[str] = []
    denied = [
        other
        for part in parts
        for rule in _deny_rules(part, problems)
        for other in _spellings(rule, names, resolve)
    ]
    allowing = _parts_that_allow(parts, problems)
    lists = [(part.source, _allow_list(part, problems)) for part in allowing if part.allowed is not UNSET]
    allowed = [rule for source, entries in lists for rule in _rules(entries, source, ALLOWED, problems)]
    keys = {key for _, entries in lists for entry in entries for key in _keys(entry)}
    return Policy(
        denied=tuple(denied),
        allowed=tuple(allowed) if lists else None,
        broken=broken,
        problems=tuple(problems),
        urls_decide="serverurl" in keys,
        commands_decide="servercommand" in keys,
        environment=(*ADMITTED_VARIABLES, *(name for part in allowing for name in part.environment)),
    )


def judge(policy: Policy, subject: Subject) -> Verdict:
    """May the server be used? Total: every subject has a verdict, every verdict a reason."""
    verdict = _judge_one(policy, subject)
    if not verdict.allowed or subject.helper is None:
        return verdict
    helper = _judge_one(policy, subject.helper)
    if helper.allowed:
        return verdict
    return Verdict(False, f"its headersHelper is judged as a command: {helper.reason}", helper.rule)


def _judge_one(policy: Policy, subject: Subject) -> Verdict:
    if policy.broken is not None:
        return Verdict(False, one_line(policy.broken, 500))
    for rule in policy.denied:
        if _denies(rule, subject):
            doubt = ", with which a text for the shell cannot be compared" if subject.is_script else ""
            return Verdict(False, f"denied by {rule.describe()}{doubt}", rule)
    if policy.allowed is None:
        return Verdict(True, "no allow list restricts servers")
    return _admission(policy, policy.allowed, subject)


def bare_commands(policy: Policy, subjects: Iterable[Subject]) -> Iterator[str]:
    """Problems: deny rules that name a program alone, and servers that start it with arguments. The number
    of words counts, so that such a rule does not mean them."""
    rules = {(rule.source, rule.text): rule.value for rule in policy.denied if rule.kind == "command"}
    with_arguments = [each for each in subjects if each.command and len(each.command) > 1]
    for (source, text), words in islice(rules.items(), PROBLEM_LIMIT):
        for each in with_arguments:
            alone = structs.replace(each, command=each.command and each.command[:1])
            if isinstance(words, tuple) and len(words) == 1 and _denies_command(words, alone):
                yield (
                    f"{_place(source, DENIED)}: {text} means the command without arguments, and does not "
                    f"deny {one_line(each.name, 60)!r}, which has some; write them too, * for any"
                )
                break


def _admission(policy: Policy, allowed: tuple[Rule, ...], subject: Subject) -> Verdict:
    held: Verdict | None = None
    for rule in allowed:
        if not _admits(policy, rule, subject):
            continue
        if not (reason := _why_withheld(policy, rule, subject)):
            return Verdict(True, f"allowed by {rule.describe()}", rule)
        held = held or Verdict(False, f"{rule.describe()} would allow it, but {reason}", rule)
    return held or Verdict(False, _why_not(policy, subject))


def _why_withheld(policy: Policy, rule: Rule, subject: Subject) -> str:
    """Which field of an entry that is not the administrator's own leads elsewhere than the rule allows."""
    if subject.scope == "enterprise":
        return ""
    if rule.kind == "url" and subject.rerouting:
        return f"the entry sets {', '.join(subject.rerouting)}, which sends requests to another host"
    if rule.kind != "command":
        return ""
    unknown = [
        one_line(masked_name(name), 60)
        for name in subject.env_names
        if not _is_named(name, policy.environment)
    ]
    if subject.sets_folder:
        return f"the entry sets {', '.join([*unknown, 'cwd'])}, which changes what is run"
    if not unknown:
        return ""
    names = ", ".join(unknown)
    return f"the entry sets {names}, which may change what is run and is not in {ENVIRONMENT}"


def _why_not(policy: Policy, subject: Subject) -> str:
    kind = _identity_kind(subject)
    if not policy.allowed:
        return "the allow list admits nothing"
    if kind == "url" and policy.urls_decide:
        return "no serverUrl of the allow list matches, and names admit no remote server beside one"
    if subject.is_script:
        return "it is a text for the shell and not a single plain command, so it cannot be compared"
    if kind == "command" and policy.commands_decide:
        shadow = "; the command was found inside the project" if _is_shadow(subject) else ""
        return (
            f"no serverCommand of the allow list matches, and names admit no stdio server beside one{shadow}"
        )
    return "nothing in the allow list matches"


def _identity_kind(subject: Subject) -> Kind:
    """By what kind of rule the server is properly named: a server inside this process has only a name."""
    return transport_type(subject.transport).identity


def _admits(policy: Policy, rule: Rule, subject: Subject) -> bool:
    kind = _identity_kind(subject)
    if isinstance(rule.value, UrlPattern):
        return kind == "url" and subject.url is not None and matches(rule.value, subject.url, any_port=False)
    if isinstance(rule.value, tuple):
        return kind == "command" and _allows_command(rule.value, subject)
    outranked = {"url": policy.urls_decide, "command": policy.commands_decide, "name": False}
    return not outranked[kind] and fits(_pieces(rule.value), subject.name)


def _denies(rule: Rule, subject: Subject) -> bool:
    if isinstance(rule.value, UrlPattern):
        url = subject.url or _EDITORS.get(subject.transport)
        return url is not None and matches(rule.value, url, any_port=True)
    if isinstance(rule.value, tuple):
        return _denies_command(rule.value, subject)
    return may_mean_server(rule.value, subject.name)


def _allows_command(words: tuple[str, ...], subject: Subject) -> bool:
    command = subject.command
    if not command or not _same_arguments(words, command):
        return False
    return any(fits(_pieces(words[0]), program) for program in _trusted_spellings(command[0], subject))


def real_program(policy: Policy, subject: Subject) -> str | None:
    """The real path of the program, if the allow list admits it by nothing else; None otherwise.

    Then that is to be started, and not the link that leads to it: Python started by a link runs the code of
    the virtual environment around the link.
    """
    command, real = subject.command, subject.executable
    if not command or real is None or subject.scope == "enterprise":
        return None
    rules = [rule.value for rule in policy.allowed or () if isinstance(rule.value, tuple)]
    programs = [_pieces(words[0]) for words in rules if _same_arguments(words, command)]
    if any(fits(each, name) for each in programs for name in _own_spellings(command[0], subject)):
        return None
    return real if any(fits(each, real) for each in programs) else None


def _trusted_spellings(written: str, subject: Subject) -> Iterator[str]:
    """What an allow rule may recognise the program by: nothing that a project folder could bend."""
    is_link = subject.found is not None and subject.found != subject.executable
    if subject.executable is not None and not (subject.is_for_shell and is_link):
        yield subject.executable
    yield from _own_spellings(written, subject)


def _own_spellings(written: str, subject: Subject) -> Iterator[str]:
    """The same without what a link leads to."""
    if "/" in written and _normal(written) != written:
        return  # `/usr/bin/../../tmp/x` fits `/usr/bin/*`
    if ("/" in written and not written.startswith("/")) or _is_shadow(subject):
        return
    yield written
    if subject.found is not None:
        yield subject.found


def _is_shadow(subject: Subject) -> bool:
    """Is a bare command answered by something inside the project, be it only a link?"""
    if not subject.command or "/" in subject.command[0] or subject.project is None:
        return False
    inside = posixpath.join(_normal(subject.project), "")
    places = (subject.executable, subject.found)
    return any(place is not None and _normal(place).startswith(inside) for place in places)


def _denies_command(words: tuple[str, ...], subject: Subject) -> bool:
    command = subject.command
    if subject.is_script:
        return True
    if not command or not _same_arguments(words, command, loosely=True):
        return False
    # Without regard to case, for file systems that have none: NPX would start npx there.
    program = _pieces(fold(words[0]))
    return any(fits(program, fold(spelling)) for spelling in _all_spellings(command[0], subject))


def _all_spellings(written: str, subject: Subject) -> Iterator[str]:
    """Everything a deny rule may recognise the program by."""
    for path in (written, _normal(written), subject.executable, subject.found):
        if path is not None:
            yield path
            yield posixpath.basename(path)


def _normal(path: str) -> str:
    """The path without detours. POSIX leaves two leading slashes alone; every system here reads one."""
    path = posixpath.normpath(path)
    return path[1:] if path.startswith("//") else path


def _same_arguments(words: tuple[str, ...], command: tuple[str, ...], *, loosely: bool = False) -> bool:
    """The same number of words, each fitting its own; the first is judged elsewhere. Loosely: without regard
    to case, look-alike characters and blanks around a word."""
    if len(words) != len(command):
        return False
    pairs = list(zip(words[1:], command[1:]))
    if loosely:
        pairs = [(fold(word).strip(), fold(argument).strip()) for word, argument in pairs]
    return all(fits(_pieces(word), argument) for word, argument in pairs)


def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("*"))


def _parts_that_allow(parts: tuple[PolicyPart, ...], problems: list[str]) -> list[PolicyPart]:
    """The parts whose allow lists and names of variables count."""
    for part in parts:
        if part.allowed is not UNSET and part.scope not in _MAY_ALLOW:
            problems.append(
                f"{_place(part.source, ALLOWED)}: ignored: scope {one_line(part.scope, 60)} cannot allow"
            )
    managed = [part for part in parts if part.scope == "enterprise"]
    if not _managed_only(parts, problems):
        return managed + [part for part in parts if part.scope == "user"]
    if all(part.allowed is UNSET for part in managed):
        problems.append(f"only the managed {ALLOWED} counts, and there is none: no server is restricted")
    return managed


def _managed_only(parts: tuple[PolicyPart, ...], problems: list[str]) -> bool:
    answer = False
    for part in parts:
        if part.managed_only is UNSET:
            continue
        if part.scope != "enterprise":
            problems.append(f"{one_line(part.source)}: the managed-only setting counts in managed files only")
            continue
        if not isinstance(part.managed_only, bool):
            problems.append(
                f"{one_line(part.source)}: the managed-only setting is not true or false: taken as true"
            )
        answer = answer or part.managed_only is not False
    return answer


def _allow_list(part: PolicyPart, problems: list[str]) -> list[Any]:
    entries = _as_list(part.allowed)
    if entries is None:
        problems.append(f"{_place(part.source, ALLOWED)}: not a list: nothing is allowed by it")
    return entries or []


def _deny_rules(part: PolicyPart, problems: list[str]) -> Iterator[Rule]:
    if part.denied is UNSET:
        return
    entries = _as_list(part.denied)
    if entries is not None:
        yield from _rules(entries, part.source, DENIED, problems)
        return
    problems.append(f"{_place(part.source, DENIED)}: not a list: everything is denied")
    yield Rule("name", "*", part.source, f"{DENIED}, which is not a list,")


def _spellings(rule: Rule, servers: frozenset[str], resolve: Callable[[str], str]) -> Iterator[Rule]:
    """A deny rule, and what else it may mean: several names, or a command, in one text; a program in other
    spellings of its path."""
    yield rule
    values: list[str | tuple[str, ...]] = []
    if isinstance(rule.value, str):
        values += separate_names(rule.value, servers)
    elif isinstance(rule.value, tuple):
        for words in dict.fromkeys((rule.value, _words_meant(rule.value))):
            values += [(program, *words[1:]) for program in _program_spellings(words[0], resolve)]
    for value in dict.fromkeys(values):
        if value != rule.value:
            yield structs.replace(rule, value=value)


def _words_meant(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words as a shell would split them, without quotes and blanks around them."""
    text = " ".join(words)
    try:
        return tuple(shlex.split(text)) or words
    except ValueError:  # a quote that does not end
        return tuple(text.split()) or words


def _program_spellings(program: str, resolve: Callable[[str], str]) -> Iterator[str]:
    """A program as written, without detours in its path, and with links of its folder and of itself followed.
    Behind the first `*` nothing can be resolved."""
    yield program
    path = posixpath.expanduser(program)
    if "/" not in path:
        return
    path = _normal(path)
    yield path
    folder, _, name = path.partition("*")[0].rpartition("/")
    if folder:
        yield _normal(posixpath.join(resolve(folder), path[len(folder) + 1 :]))
    if "*" not in path and name and posixpath.basename(real := resolve(path)) not in _MANY_PROGRAMS:
        yield real


def _as_list(value: Any) -> list[Any] | None:
    return list(cast("list[Any]", value)) if isinstance(value, list | tuple) else None


def _rules(entries: Iterable[Any], source: str, field: str, problems: list[str]) -> Iterator[Rule]:
    """Of an allow list, an entry that cannot be read admits nothing; of a deny list, it denies what can be
    read of it, or everything."""
    wrong = 0
    for number, entry in enumerate(entries):
        deny = field == DENIED
        try:
            yield _rule(_meant(entry) if deny else entry, source, deny=deny)
        except ConfigError as error:
            wrong += 1
            found = list(_readable_rules(entry, source)) if deny else []
            if wrong <= PROBLEM_LIMIT:
                effect = "" if found or not deny else "; everything is denied until it is corrected"
                problems.append(f"{_place(source, f'{field}[{number}]')}: {error}{effect}")
            if deny:
                everything = Rule("name", "*", source, f"{DENIED}[{number}], which cannot be read,")
                yield from found or [everything]
    if wrong > PROBLEM_LIMIT:
        problems.append(f"{_place(source, field)}: and {wrong - PROBLEM_LIMIT} more problems")


def _meant(entry: Any) -> Any:
    """A denied server as it was meant: a name alone, or a key in other letters, denies as well."""
    if isinstance(entry, str):
        return {"serverName": entry}
    if not isinstance(entry, dict):
        return entry
    pairs = cast("dict[Any, Any]", entry).items()
    return {_KEYS_MEANT.get(str(key).casefold(), key): value for key, value in pairs}


def _readable_rules(entry: Any, source: str) -> Iterator[Rule]:
    """Of a deny entry in the wrong form, one rule for each known key and each of its values."""
    meant = _meant(entry)
    pairs = cast("dict[str, Any]", meant).items() if isinstance(meant, dict) else ()
    for key, value in pairs:
        if key in _KINDS:
            for each in _values_meant(key, value):
                with contextlib.suppress(ConfigError):
                    yield _rule({key: each}, source, deny=True)


def _values_meant(key: str, value: Any) -> list[Any]:
    if key != "serverCommand":
        return _as_list(value) or [value]
    try:
        return [shlex.split(value)] if isinstance(value, str) else [value]
    except ValueError:  # a quote that does not end
        return []


_KEYS_MEANT: Final = {
    **{key.casefold(): key for key in _KINDS},
    **{kind: key for key, kind in _KINDS.items()},
}


def _rule(entry: Any, source: str, *, deny: bool) -> Rule:
    key, written = _only_pair(entry)
    kind = _KINDS[key]
    words = _words(key, written)
    text = ", ".join(f'"{one_line(word, 200)}"' for word in words)
    if not deny and any("${" in word for word in words):
        raise ConfigError("variables are not expanded in policy, so this entry admits nothing")
    if deny:
        words = tuple(_VARIABLE.sub("*", word) for word in words)
    if kind == "command":
        return Rule(kind, words, source, f"{key} [{text}]")
    value = _url_pattern(words[0], variable=words[0] != written) if kind == "url" else words[0]
    return Rule(kind, value, source, f"{key} {text}")


def _url_pattern(text: str, *, variable: bool) -> UrlPattern:
    # What was a variable may have held the scheme too, as in `${BASE}/mcp`.
    return parse_pattern(f"*://{text}" if variable and "://" not in text else text)


def _only_pair(entry: Any) -> tuple[str, Any]:
    if not isinstance(entry, dict):
        raise ConfigError("not an object with serverName, serverUrl or serverCommand")
    pairs = list(cast("dict[str, Any]", entry).items())
    if len(pairs) != 1:
        raise ConfigError("needs exactly one of serverName, serverUrl and serverCommand, and nothing else")
    key, value = pairs[0]
    if key not in _KINDS:
        raise ConfigError(f"{one_line(str(key), 60)} is none of serverName, serverUrl and serverCommand")
    return key, value


def _words(key: str, value: Any) -> tuple[str, ...]:
    """The strings of an entry: one, or a command's."""
    if key != "serverCommand":
        if not isinstance(value, str) or not value.strip(" ,"):
            raise ConfigError(f"{key} is not a text")
        return (value,)
    words = _as_list(value)
    if not words or not words[0] or not all(isinstance(word, str) for word in words):
        raise ConfigError("serverCommand is not a list of words")
    return tuple(words)


def _keys(entry: Any) -> Iterator[str]:
    """The keys an entry uses, however wrong it is: a misspelt serverUrl still shows what was meant."""
    if isinstance(entry, dict):
        yield from (str(key).casefold() for key in cast("dict[Any, Any]", entry))


def _place(source: str, field: str) -> str:
    return f"{one_line(source)}: {field}"
