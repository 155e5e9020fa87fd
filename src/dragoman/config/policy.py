"""Policy: which servers may be used at all. Pure.

Contains allow and deny lists, their meaning for one server, and the reason for a person. Other modules read
the files, find the executable of a command and act on the verdict; `judge` is called before each start or
connection with exactly what is about to be started or connected to.

A deny rule takes precedence over everything, and deny rules of every scope apply. Allow rules apply only from
the administrator and the person, never from a folder. A rule that cannot be understood never admits a server,
and affects no other rule. No content of a file raises an exception here.

Names, URLs and the words of a command may contain `*` for any run of characters; no other character is
special. An allow list compares names exactly, a deny list as deny rules do (`names.may_mean_server`). A name
does not prove which server uses it: as soon as an allow list contains one `serverUrl` entry, names no longer
admit remote servers, and likewise for `serverCommand` and stdio servers.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final, Literal

from msgspec import Struct, structs

from dragoman.cleaning import fold, one_line
from dragoman.config.masking import masked_name
from dragoman.config.model import PROBLEM_LIMIT
from dragoman.names import may_mean_server
from dragoman.paths import normal_path
from dragoman.transport_types import TRANSPORT_TYPES, transport_type
from dragoman.urls import ServerUrl, UrlPattern, matches, parse_url
from dragoman.wildcards import fits

ALLOWED: Final = "allowedMcpServers"
ENVIRONMENT: Final = "allowedMcpEnvironment"
DENIED: Final = "deniedMcpServers"

LOADER_VARIABLES: Final = (
    *("PATH", "HOME", "XDG_CONFIG_HOME", "LD_*", "DYLD_*", "GCONV_PATH"),
    *("ENV", "BASH_ENV", "BASH_FUNC_*", "GIT_*"),
    *("NODE_OPTIONS", "NODE_PATH", "NPM_CONFIG_*", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED"),
    *("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "PYTHONUSERBASE", "PYTHONWARNINGS", "PIP_*", "UV_*"),
    *("PYTHONPYCACHEPREFIX", "PYTHONSAFEPATH", "PYTHONPLATLIBDIR", "PYTHONBREAKPOINT", "PYTHONINSPECT"),
    *("PERL5OPT", "PERL5LIB", "PERLLIB", "PERL5DB", "RUBYOPT", "RUBYLIB", "NODE_COMPILE_CACHE"),
    *("DOTNET_STARTUP_HOOKS", "DOTNET_ADDITIONAL_DEPS", "CORECLR_*", "COR_*", "OPENSSL_*"),
    *("CLASSPATH", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"),
    *("*_PROXY", "SSL_CERT_*", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
)
"""Variables, in any letter case, that make an ordinary program run or trust something else. The approval
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
can be listed in `allowedMcpEnvironment`."""

Kind = Literal["name", "url", "command"]

_EDITORS: Final = {
    name: parse_url(row.editor_url) for name, row in TRANSPORT_TYPES.items() if row.editor_url is not None
}
"""The addresses of servers of editors whose entries have no URL; the port is known only when they are
connected."""


class PolicySubject(Struct, frozen=True, kw_only=True):
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
    """Whether it is a shell text that is not a single plain command: no rule can be compared with it."""
    found: str | None = None
    """Where the command was found, before links are followed; None: same as `executable`."""
    is_for_shell: bool = False
    """Whether the shell starts it by exactly these words, so that nothing else can be started instead."""
    project: str | None = None
    """The real path of the project folder."""
    env_names: tuple[str, ...] = ()
    """The names of variables that the entry sets for the process."""
    sets_folder: bool = False
    """Whether the entry sets the folder to start in."""
    helper: PolicySubject | None = None
    """The command that prints headers, as if it were a stdio server of this name."""
    rerouting: tuple[str, ...] = ()
    """Fields of the entry by which its messages or credentials are sent to another peer than the URL
    names."""

    def __repr__(self) -> str:
        """Without arguments, which may contain secrets."""
        return f"<Subject {self.name!r} {self.transport} from {self.scope}>"


class PolicyRule(Struct, frozen=True):
    """One entry of a list."""

    kind: Kind
    value: str | tuple[str, ...] | UrlPattern
    source: str
    """The file that contains it."""
    text: str
    """A description of the rule for people."""

    def describe(self) -> str:
        return f"{self.text} in {one_line(self.source)}"


class Policy(Struct, frozen=True):
    """The combined policy of all files."""

    denied: tuple[PolicyRule, ...] = ()
    allowed: tuple[PolicyRule, ...] | None = None
    """None: no list restricts anything. Empty: nothing is allowed."""
    broken: str | None = None
    """Why the prohibitions are unknown, as a sentence. Then nothing is admitted."""
    problems: tuple[str, ...] = ()
    urls_decide: bool = False
    """Remote servers are admitted by URL only."""
    commands_decide: bool = False
    """Stdio servers are admitted by command only."""
    environment: tuple[str, ...] = ADMITTED_VARIABLES
    """Patterns for the names of variables that entries may set beside an allowed command."""


class PolicyVerdict(Struct, frozen=True):
    allowed: bool
    reason: str
    rule: PolicyRule | None = None
    """The rule that decided, if one did."""


def loader_variables(names: Iterable[str]) -> tuple[str, ...]:
    """The names among these that change what a program runs."""
    return tuple(name for name in names if _is_named(name, LOADER_VARIABLES))


def _is_named(name: str, patterns: Iterable[str]) -> bool:
    return any(fits(_pieces(pattern.upper()), name.upper()) for pattern in patterns)


def judge(policy: Policy, subject: PolicySubject) -> PolicyVerdict:
    """Decides whether a server may be used. Every subject gets a verdict, and every verdict has a reason."""
    verdict = _judge_one(policy, subject)
    if not verdict.allowed or subject.helper is None:
        return verdict
    helper = _judge_one(policy, subject.helper)
    if helper.allowed:
        return verdict
    return PolicyVerdict(False, f"its headersHelper is judged as a command: {helper.reason}", helper.rule)


def _judge_one(policy: Policy, subject: PolicySubject) -> PolicyVerdict:
    if policy.broken is not None:
        return PolicyVerdict(False, one_line(policy.broken, 500))
    for rule in policy.denied:
        if _denies(rule, subject):
            doubt = ", with which a text for the shell cannot be compared" if subject.is_script else ""
            return PolicyVerdict(False, f"denied by {rule.describe()}{doubt}", rule)
    if policy.allowed is None:
        return PolicyVerdict(True, "no allow list restricts servers")
    return _admission(policy, policy.allowed, subject)


def bare_commands(policy: Policy, subjects: Iterable[PolicySubject]) -> Iterator[str]:
    """Problems: deny rules that name a program without arguments, although servers start it with arguments.
    Such a rule does not match them, because the number of words must be equal."""
    rules = {(rule.source, rule.text): rule.value for rule in policy.denied if rule.kind == "command"}
    with_arguments = [each for each in subjects if each.command and len(each.command) > 1]
    for (source, text), words in islice(rules.items(), PROBLEM_LIMIT):
        for each in with_arguments:
            alone = structs.replace(each, command=each.command and each.command[:1])
            if isinstance(words, tuple) and len(words) == 1 and _denies_command(words, alone):
                yield (
                    f"{place(source, DENIED)}: {text} means the command without arguments, and does not "
                    f"deny {one_line(each.name, 60)!r}, which has some; write them too, * for any"
                )
                break


def _admission(policy: Policy, allowed: tuple[PolicyRule, ...], subject: PolicySubject) -> PolicyVerdict:
    held: PolicyVerdict | None = None
    for rule in allowed:
        if not _admits(policy, rule, subject):
            continue
        if not (reason := _why_withheld(policy, rule, subject)):
            return PolicyVerdict(True, f"allowed by {rule.describe()}", rule)
        held = held or PolicyVerdict(False, f"{rule.describe()} would allow it, but {reason}", rule)
    return held or PolicyVerdict(False, _why_not(policy, subject))


def _why_withheld(policy: Policy, rule: PolicyRule, subject: PolicySubject) -> str:
    """The field by which an entry that is not the administrator's own goes beyond the rule that allows it."""
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


def _why_not(policy: Policy, subject: PolicySubject) -> str:
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


def _identity_kind(subject: PolicySubject) -> Kind:
    """The kind of rule that identifies the server; a server inside this process has only a name."""
    return transport_type(subject.transport).identity


def _admits(policy: Policy, rule: PolicyRule, subject: PolicySubject) -> bool:
    kind = _identity_kind(subject)
    if isinstance(rule.value, UrlPattern):
        return kind == "url" and subject.url is not None and matches(rule.value, subject.url, any_port=False)
    if isinstance(rule.value, tuple):
        return kind == "command" and _allows_command(rule.value, subject)
    outranked = {"url": policy.urls_decide, "command": policy.commands_decide, "name": False}
    return not outranked[kind] and fits(_pieces(rule.value), subject.name)


def _denies(rule: PolicyRule, subject: PolicySubject) -> bool:
    if isinstance(rule.value, UrlPattern):
        url = subject.url or _EDITORS.get(subject.transport)
        return url is not None and matches(rule.value, url, any_port=True)
    if isinstance(rule.value, tuple):
        return _denies_command(rule.value, subject)
    return may_mean_server(rule.value, subject.name)


def _allows_command(words: tuple[str, ...], subject: PolicySubject) -> bool:
    command = subject.command
    if not command or not _same_arguments(words, command):
        return False
    return any(fits(_pieces(words[0]), program) for program in _trusted_spellings(command[0], subject))


def real_program(policy: Policy, subject: PolicySubject) -> str | None:
    """The real path of the program, if the allow list admits it by nothing else; None otherwise.

    Then this path is started, not the link to it: Python started through a link runs the code of the virtual
    environment around the link.
    """
    command, real = subject.command, subject.executable
    if not command or real is None or subject.scope == "enterprise":
        return None
    rules = [rule.value for rule in policy.allowed or () if isinstance(rule.value, tuple)]
    programs = [_pieces(words[0]) for words in rules if _same_arguments(words, command)]
    if any(fits(each, name) for each in programs for name in _own_spellings(command[0], subject)):
        return None
    return real if any(fits(each, real) for each in programs) else None


def _trusted_spellings(written: str, subject: PolicySubject) -> Iterator[str]:
    """The spellings by which an allow rule recognises the program: none that a project folder could
    influence."""
    is_link = subject.found is not None and subject.found != subject.executable
    if subject.executable is not None and not (subject.is_for_shell and is_link):
        yield subject.executable
    yield from _own_spellings(written, subject)


def _own_spellings(written: str, subject: PolicySubject) -> Iterator[str]:
    """The trusted spellings without the targets of links."""
    if "/" in written and normal_path(written) != written:
        return  # `/usr/bin/../../tmp/x` fits `/usr/bin/*`
    if ("/" in written and not written.startswith("/")) or _is_shadow(subject):
        return
    yield written
    if subject.found is not None:
        yield subject.found


def _is_shadow(subject: PolicySubject) -> bool:
    """Whether a bare command is found inside the project, even if only as a link."""
    if not subject.command or "/" in subject.command[0] or subject.project is None:
        return False
    inside = posixpath.join(normal_path(subject.project), "")
    places = (subject.executable, subject.found)
    return any(place is not None and normal_path(place).startswith(inside) for place in places)


def _denies_command(words: tuple[str, ...], subject: PolicySubject) -> bool:
    command = subject.command
    if subject.is_script:
        return True
    if not command or not _same_arguments(words, command, loosely=True):
        return False
    # Ignoring case, for case-insensitive file systems: NPX would start npx there.
    program = _pieces(fold(words[0]))
    return any(fits(program, fold(spelling)) for spelling in _all_spellings(command[0], subject))


def _all_spellings(written: str, subject: PolicySubject) -> Iterator[str]:
    """All spellings by which a deny rule recognises the program."""
    for path in (written, normal_path(written), subject.executable, subject.found):
        if path is not None:
            yield path
            yield posixpath.basename(path)


def _same_arguments(words: tuple[str, ...], command: tuple[str, ...], *, loosely: bool = False) -> bool:
    """Whether there is the same number of words, and each matches its pattern; the first word is checked
    separately. Loosely: ignoring case, look-alike characters and blanks around a word."""
    if len(words) != len(command):
        return False
    pairs = list(zip(words[1:], command[1:]))
    if loosely:
        pairs = [(fold(word).strip(), fold(argument).strip()) for word, argument in pairs]
    return all(fits(_pieces(word), argument) for word, argument in pairs)


def _pieces(pattern: str) -> tuple[str, ...]:
    return tuple(pattern.split("*"))


def place(source: str, field: str) -> str:
    return f"{one_line(source)}: {field}"
