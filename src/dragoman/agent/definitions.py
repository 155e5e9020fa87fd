"""Agents that are defined in files: Markdown with YAML front matter.

The person's agents are in the folder `agents` of the configuration folder. Agents in a project's
`.dragoman/agents` or in a plugin can be used only after the person has approved the file as it is. No file
defines hooks. If several agents have the same name, the person's agent takes precedence, then that of the
nearest project, then that of a plugin.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, structs

from dragoman.agent.front_matter import FrontMatter, InvalidAgent, front_matter_length, split_front_matter
from dragoman.calls.requests import LIST_RESOURCES, READ_RESOURCE
from dragoman.catalog.naming import prefix
from dragoman.cleaning import for_model, one_line
from dragoman.config import approval
from dragoman.config.file_reading import read_text
from dragoman.config.scopes import Scope, Sources
from dragoman.errors import ConfigError, ConfigFileError, NotFound
from dragoman.permissions.conditions import BadRule
from dragoman.permissions.modes import PermissionMode
from dragoman.permissions.rules import parse_prohibited_tool
from dragoman.permissions.subjects import Subject
from dragoman.wildcards import fits

FOLDER: Final = "agents"
LIMIT_CHARACTERS: Final = 200_000
DESCRIPTION_CHARACTERS: Final = 1_000
FILE_LIMIT: Final = 500
"""The most files that are read in one folder."""
FRONT_MATTER_LIMIT: Final = 60_000
"""The most characters of front matter that are read in all files of one folder; for the person's own agents,
in one file."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

_FOR_RESOURCES: Final = (LIST_RESOURCES, READ_RESOURCE)

AgentState = Literal["ready", "pending", "broken"]


class AgentDefinition(Struct, frozen=True, kw_only=True):
    """One agent, as its file defines it."""

    name: str
    description: str = ""
    """Describes for the model which work to give to this agent."""
    prompt: str = ""
    tools: tuple[str, ...] | None = None
    """Names of tools, with `*`; `mcp__server` means every tool of the server. None: all tools."""
    disallowed_tools: tuple[str, ...] = ()
    """Names of tools that the agent must not have, even if `tools` includes them."""
    model: str | None = None
    """The model, as `provider:name`; None: the model of the conversation."""
    servers: tuple[str | Mapping[str, object], ...] | None = None
    """Names of configured servers, and entries that the file defines. None: all configured servers."""
    required_servers: tuple[str, ...] = ()
    max_turns: int | None = None
    permission_mode: PermissionMode | None = None
    """Used only for the person's own agents, with `--agent`."""
    path: Path
    scope: Scope
    text: str = ""
    """The text of the whole file. An approval applies to exactly this text."""
    state: AgentState = "ready"
    problems: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    def has_tool(self, name: str, servers: Iterable[str] = ()) -> bool:
        """Whether the agent has the tool of this name. Other names that a server's tool could have are not
        known here (see `Host.for_agent`). `servers`: the names of all servers."""
        if any(_matches(each, name) or _may_mean(each, name) for each in self.disallowed_tools):
            return False
        return self.tools is None or any(_matches(pattern, name, servers) for pattern in self.tools)

    def has_resources(self, servers: Iterable[str]) -> bool:
        """Whether the agent has the tools for resources. They read resources of every server. Therefore an
        agent does not have them if it names its servers, or disallows one of `servers`."""
        if self.servers is not None or not all(self.has_tool(each.name) for each in _FOR_RESOURCES):
            return False
        return not any(_may_mean(each, "", server) for server in servers for each in self.disallowed_tools)


def _matches(pattern: str, name: str, servers: Iterable[str] = ()) -> bool:
    if fits(tuple(pattern.split("*")), name):
        return True
    start = f"{pattern}__"
    is_server = pattern.startswith("mcp__") and "__" not in pattern[5:]
    if not is_server or not name.startswith(start):
        return False
    starts = (prefix(server) for server in servers)  # `mcp__a` does not mean a server called `a__b`
    return not any(
        len(each) > len(start) and each.startswith(start) and name.startswith(each) for each in starts
    )


def _may_mean(pattern: str, name: str, server: str = "") -> bool:
    """Whether a prohibition applies to the built-in tool or to the whole server. Names are compared as in a
    deny rule."""
    return Subject.of(pattern).may_mean(name, server, "")


def find_agents(sources: Sources) -> list[AgentDefinition]:
    """All agents, one for each name, in the order of names. Raises `MissingPackage`."""
    answers, _ = approval.read_answers(sources.approvals_file)
    found: dict[str, AgentDefinition] = {}
    for scope, folder in _folders(sources):
        room = FRONT_MATTER_LIMIT
        for path in _files(folder):
            agent = _with_state(_read(path, scope, room), answers)
            used = front_matter_length(agent.text)
            room -= used if scope != "user" and used <= room else 0
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
    """The folders with agents, and the scope of each, in the order of precedence."""
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
    """The folder of the project to which the file belongs."""
    return path.parent.parent.parent


def _read(path: Path, scope: Scope, room: int = FRONT_MATTER_LIMIT) -> AgentDefinition:
    text = ""
    try:
        target = Path(os.path.realpath(path))
        if scope == "project" and not target.is_relative_to(project_of(path)):
            raise InvalidAgent(f"it is a link to {target}, which is outside its project")
        text = read_text(path) or ""
        if front_matter_length(text) > room:
            raise InvalidAgent(
                "its front matter is not read: the agents of one folder may have "
                f"{FRONT_MATTER_LIMIT} characters of front matter in all"
            )
        return parse(text, path, scope)
    except (ConfigFileError, InvalidAgent) as error:
        problem = one_line(str(error), 400)
        name = one_line(path.stem, 64)
        return AgentDefinition(
            name=name, path=path, scope=scope, text=text, state="broken", problems=(problem,)
        )


def parse(text: str, path: Path, scope: Scope) -> AgentDefinition:
    """The agent in a file. Raises `InvalidAgent`, and `MissingPackage`."""
    if len(text) > LIMIT_CHARACTERS:
        raise InvalidAgent(f"the file has more than {LIMIT_CHARACTERS} characters")
    fields, rest = split_front_matter(text)
    reader = FrontMatter(fields, scope)
    name = reader.text("name") or path.stem
    if not _NAME.fullmatch(name):
        raise InvalidAgent(
            f"{one_line(name, 80)!r} is not a valid name: use up to 64 letters, digits, - _ . and begin with "
            "a letter or a digit"
        )
    prompt = "\n\n".join(each for each in (reader.text("prompt"), rest.strip()) if each)
    return AgentDefinition(
        name=name,
        description=for_model(reader.text("description") or "", DESCRIPTION_CHARACTERS),
        prompt=for_model(prompt),
        tools=reader.names("tools"),
        disallowed_tools=_prohibited(reader.names("disallowedTools") or ()),
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


def _prohibited(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names. Raises `InvalidAgent` for a name that cannot prohibit a tool."""
    for name in names:
        try:
            parse_prohibited_tool(name)
        except BadRule as error:
            raise InvalidAgent(f'"disallowedTools": {one_line(name, 80)}: {error}') from None
    return names


def usable(agents: Sequence[AgentDefinition]) -> tuple[AgentDefinition, ...]:
    return tuple(agent for agent in agents if agent.state == "ready")
