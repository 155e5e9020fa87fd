"""Agents that are defined in files: Markdown with YAML front matter.

The person's own are in the folder `agents` of the configuration folder. Those in a project's
`.dragoman/agents` or in a plugin count only once the person has approved the file as it is. No file defines
hooks. Of several agents of one name the person's own counts, then the nearest project's, then a plugin's.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct, structs

from dragoman.cleaning import for_model, one_line
from dragoman.config import approval
from dragoman.config.file_reading import read_text
from dragoman.config.scopes import CLAIMS, Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError, MissingPackage, NotFound
from dragoman.permissions.modes import MODES, PermissionMode
from dragoman.wildcards import fits

FOLDER: Final = "agents"
LIMIT_CHARACTERS: Final = 200_000
DESCRIPTION_CHARACTERS: Final = 1_000
FILE_LIMIT: Final = 500
"""Files that are looked at in one folder."""
_FENCE: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$\n?", re.DOTALL | re.MULTILINE)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_ALIASES: Final[Mapping[str, str]] = {
    "mcpServers": "servers",
    "requiredMcpServers": "requiredServers",
    "subagent_type": "name",
}
"""Keys of other programs' agents that mean the same."""

AgentState = Literal["ready", "pending", "broken"]


class AgentDefinition(Struct, frozen=True, kw_only=True):
    """One agent, as its file says."""

    name: str
    description: str = ""
    """For the model that gives work to it."""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    """Names, with `*`; `mcp__server` is every tool of the server. None: all."""
    model: str | None = None
    """`provider:name`; None: the conversation's."""
    servers: tuple[str | Mapping[str, object], ...] | None = None
    """Names of configured servers, and entries of its own by name. None: all configured servers."""
    required_servers: tuple[str, ...] = ()
    max_turns: int | None = None
    permission_mode: PermissionMode | None = None
    """Counts for the person's own agents, with `--agent`."""
    path: Path
    scope: Scope
    text: str = ""
    """The whole file: an approval holds for exactly this text."""
    state: AgentState = "ready"
    problems: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def has_tool(self, name: str) -> bool:
        return self.tools is None or any(_means(pattern, name) for pattern in self.tools)


def _means(pattern: str, name: str) -> bool:
    is_server = pattern.startswith("mcp__") and "__" not in pattern[5:]
    return fits(tuple(pattern.split("*")), name) or (is_server and name.startswith(f"{pattern}__"))


def find_agents(sources: Sources) -> list[AgentDefinition]:
    """All agents by name, one for each. Raises `MissingPackage`."""
    answers, _ = approval.read_answers(sources.approvals_file)
    found: dict[str, AgentDefinition] = {}
    for scope, folder in _folders(sources):
        for path in _files(folder):
            agent = _with_state(_read(path, scope), answers)
            found.setdefault(agent.name, agent)
    return sorted(found.values(), key=lambda agent: agent.name)


def find_agent(sources: Sources, name: str) -> AgentDefinition:
    """The agent of this name, ready to be used. Raises `NotFound` and `ConfigError`."""
    agents = {agent.name: agent for agent in find_agents(sources)}
    agent = agents.get(name)
    if agent is None:
        known = ", ".join(agents) or "none"
        raise NotFound(f"there is no agent {one_line(name, 80)!r}", hint=f"There are: {known}.")
    if agent.state == "broken":
        raise ConfigError(f"the agent {name} cannot be used: {agent.problems[0]}", hint="Correct the file.")
    if agent.state == "pending":
        raise ConfigError(
            f"the agent {name} comes from {one_line(str(agent.path))} and is not approved",
            hint=f"`dragoman agents approve {name}` shows it and asks.",
        )
    return agent


def approve_agent(sources: Sources, agent: AgentDefinition) -> None:
    approval.remember_agent(sources.approvals_file, agent.path, agent.digest)


def _folders(sources: Sources) -> Iterator[tuple[Scope, Path]]:
    """The folders with agents, and the scope of each; the strongest first."""
    own = sources.config_dir / FOLDER
    yield "user", own
    for folder in sources.folders():
        if (project := folder / ".dragoman" / FOLDER) != own:
            yield "project", project
    for file in sources.plugin_files():
        yield "plugin", file.parent / FOLDER


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".md"))
    except OSError:
        return []
    return [folder / name for name in names[:FILE_LIMIT]]


def _with_state(agent: AgentDefinition, answers: approval.Answers) -> AgentDefinition:
    if agent.state == "broken" or agent.scope == "user" or answers.approves_agent(agent.path, agent.digest):
        return agent
    return structs.replace(agent, state="pending")


def project_of(path: Path) -> Path:
    """The folder of the project that has the agent in this file."""
    return path.parent.parent.parent


def _read(path: Path, scope: Scope) -> AgentDefinition:
    try:
        target = Path(os.path.realpath(path))
        if scope == "project" and not target.is_relative_to(project_of(path)):
            raise _Wrong(f"it leads to {target}, outside its project")
        return parse(read_text(path) or "", path, scope)
    except (ConfigFileError, _Wrong) as error:
        problem = one_line(str(error), 400)
        name = one_line(path.stem, 64)
        return AgentDefinition(name=name, path=path, scope=scope, state="broken", problems=(problem,))


class _Wrong(Exception):
    """Why a file defines no agent."""


def parse(text: str, path: Path, scope: Scope) -> AgentDefinition:
    """The agent in a file. Pure. Raises `_Wrong`."""
    if len(text) > LIMIT_CHARACTERS:
        raise _Wrong(f"the file has more than {LIMIT_CHARACTERS} characters")
    fence = _FENCE.match(text)
    if fence is None:
        raise _Wrong("it does not begin with front matter between two lines ---")
    reader = _Reader(_front_matter(fence[1]), scope)
    name = reader.text("name") or path.stem
    if not _NAME.fullmatch(name):
        raise _Wrong(f"{one_line(name, 80)!r} is not a name: letters, digits, - _ . are possible")
    prompt = "\n\n".join(each for each in (reader.text("prompt"), text[fence.end() :].strip()) if each)
    return AgentDefinition(
        name=name,
        description=for_model(reader.text("description") or "", DESCRIPTION_CHARACTERS),
        prompt=for_model(prompt),
        tools=reader.names("tools"),
        model=reader.model(),
        servers=reader.servers(),
        required_servers=reader.names("requiredServers") or (),
        max_turns=reader.number("maxTurns"),
        permission_mode=reader.mode(),
        path=path,
        scope=scope,
        text=text,
        problems=tuple(reader.problems()),
    )


def _front_matter(text: str) -> dict[str, Any]:
    try:
        import yaml
    except ImportError:
        raise MissingPackage("pyyaml", "agent") from None

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            # A few lines of aliases can stand for gigabytes.
            if self.check_event(yaml.AliasEvent):  # pyright: ignore[reportUnknownMemberType]
                raise _Wrong("its front matter uses an alias (*), which is not read here")
            return super().compose_node(parent, index)

    try:
        found: Any = yaml.load(text, Loader)  # a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f" (line {mark.line + 2})" if mark is not None else ""
        what = getattr(error, "problem", None) or type(error).__name__
        raise _Wrong(f"its front matter is not YAML{line}: {what}") from None
    if not isinstance(found, dict):
        raise _Wrong("its front matter has no keys")
    fields = cast("dict[object, Any]", found)
    return {_ALIASES.get(str(key), str(key)): value for key, value in fields.items()}


class _Reader:
    """Reads the front matter of one file; each key once."""

    def __init__(self, fields: dict[str, Any], scope: Scope) -> None:
        self._left = fields
        self._scope = scope
        self._problems: list[str] = []

    def problems(self) -> list[str]:
        """What has no effect; after everything was read."""
        unused = [f"{one_line(key, 60)} has no effect" for key in self._left]
        return [*self._problems, *unused]

    def text(self, key: str) -> str | None:
        return self._typed(key, lambda value: isinstance(value, str), "text")

    def number(self, key: str) -> int | None:
        return self._typed(
            key,
            lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
            "a number above 0",
        )

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, or one text with commas."""
        found: Any = self._left.pop(key, None)
        if found is None:
            return None
        if isinstance(found, str):
            return tuple(name.strip() for name in found.split(",") if name.strip())
        names = cast("list[object]", found) if isinstance(found, list) else [None]
        if not all(isinstance(name, str) for name in names):
            raise _Wrong(f'"{key}" must be a list of names')
        return tuple(map(str, names))

    def model(self) -> str | None:
        model = self.text("model")
        if model in (None, "inherit"):
            return None
        if ":" not in model:
            self._problems.append(f"model {one_line(model, 60)!r} is not provider:name; it has no effect")
            return None
        return model

    def mode(self) -> PermissionMode | None:
        mode = self.text("permissionMode")
        if mode is None:
            return None
        if self._scope != "user":
            self._problems.append("permissionMode has no effect: it counts in your own agents only")
            return None
        if mode not in MODES:
            raise _Wrong(f'"permissionMode" must be one of {", ".join(MODES)}')
        return mode

    def servers(self) -> tuple[str | Mapping[str, object], ...] | None:
        found: Any = self._left.pop("servers", None)
        if found is None:
            return None
        if isinstance(found, str):
            return tuple(name.strip() for name in found.split(",") if name.strip())
        if isinstance(found, dict):
            found = [found]
        if not isinstance(found, list):
            raise _Wrong('"servers" must be a list of names and of entries by name')
        return tuple(self._server(item) for item in cast("list[object]", found))

    def _server(self, item: object) -> str | Mapping[str, object]:
        if isinstance(item, str):
            return item
        if not isinstance(item, dict):
            raise _Wrong('"servers" must be a list of names and of entries by name')
        entries = cast("dict[object, object]", item)
        return {str(name): self._entry(entry) for name, entry in entries.items()}

    def _entry(self, entry: object) -> object:
        """Without what only the person's own settings may say of a server."""
        fields = cast("Mapping[str, Any]", entry) if isinstance(entry, dict) else None
        if fields is None or self._scope == "user":
            return cast("object", entry)
        claims = {field for field, value, _ in CLAIMS if _may_mean(fields.get(field), value)}
        self._problems += [f"{claim} of a server has no effect here" for claim in sorted(claims)]
        return {key: value for key, value in fields.items() if key not in claims}

    def _typed(self, key: str, fitting: Callable[[Any], bool], kind: str) -> Any:
        found = self._left.pop(key, None)
        if found is not None and not fitting(found):
            raise _Wrong(f'"{key}" must be {kind}')
        return found


def _may_mean(given: object, value: object) -> bool:
    """Whether a field of an entry has the value, or may have it once variables are replaced."""
    return given == value or (isinstance(given, str) and "${" in given)


def usable(agents: Sequence[AgentDefinition]) -> tuple[AgentDefinition, ...]:
    return tuple(agent for agent in agents if agent.state == "ready")
