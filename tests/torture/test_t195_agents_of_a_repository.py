"""T195: an approved agent runs no program of a folder other than the one it was approved in."""

import contextlib
import sys
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.definitions import approve_agent, find_agents, parse
from dragoman.agent_servers import AgentServers
from dragoman.config.scopes import Scope, Sources
from tests.servers import SERVER_PROGRAMS
from tests.torture.projects import Canary

pytestmark = pytest.mark.requirement("CFG-8")
AGENT = "---\nservers: [{own: {command: ./tool}}]\n---\nYou work.\n"
FOLDER = ".dragoman/agents"


class World:
    """A folder with a tool that writes the folder's name to a marker file, for each requested folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.canary = Canary(home / "canary")

    def folder(self, place: str) -> Path:
        folder = self.home / "work" / place
        folder.mkdir(parents=True)
        tool = folder / "tool"
        serve = f"exec {sys.executable} -S -E {SERVER_PROGRAMS / 'well_behaved.py'}"
        tool.write_text(f"#!/bin/sh\n{self.canary.script(folder.name)}\n{serve}\n")
        tool.chmod(0o755)
        return folder

    @staticmethod
    def put_agent(folder: Path, text: str = AGENT, name: str = "helper") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text(text)

    async def use(self, cwd: Path) -> set[str]:
        """The folders whose tool ran when every ready agent was used there."""
        self.canary.forget()
        sources = Sources.here(cwd)
        for agent in find_agents(sources):
            if agent.state == "ready":
                with contextlib.chdir(cwd):
                    async with (
                        Host(sources) as host,
                        open_agent_tools(host, Folders(cwd), agent) as agent_tools,
                    ):
                        await agent_tools.wait_until_connected()
        return self.canary.started


@pytest.fixture
def world(home: Path) -> World:
    return World(home)


def approve_all(cwd: Path) -> None:
    sources = Sources.here(cwd)
    for agent in find_agents(sources):
        approve_agent(sources, agent)


@pytest.mark.parametrize("link", [".dragoman", FOLDER, f"{FOLDER}/helper.md"])
async def test_t195_a_symlinked_folder_does_not_add_agents_of_another_project(world: World, link: str):
    good, clone = world.folder("good"), world.folder("clone")
    world.put_agent(good / FOLDER)
    approve_all(good)
    assert await world.use(good) == {"good"}
    (clone / link).parent.mkdir(parents=True, exist_ok=True)
    (clone / link).symlink_to(good / link)
    (agent,) = find_agents(Sources.here(clone))
    assert (agent.state, agent.text) == ("broken", "")
    target = good / FOLDER / "helper.md"
    assert agent.problems == (f"it is a link to {target}, which is outside its project",)
    assert await world.use(clone) == set()


@pytest.mark.parametrize("link", [".dragoman", FOLDER, f"{FOLDER}/helper.md"])
async def test_t195_an_approval_in_an_inner_project_does_not_apply_to_the_outer_one(world: World, link: str):
    outer, inner = world.folder("outer"), world.folder("outer/inner")  # like a submodule
    world.put_agent(inner / FOLDER)
    approve_all(inner)
    assert await world.use(inner) == {"inner"}
    (outer / link).parent.mkdir(parents=True, exist_ok=True)
    (outer / link).symlink_to(inner / link)
    assert [agent.state for agent in find_agents(Sources.here(outer))] == ["pending"]
    assert await world.use(outer) == set()
    assert await world.use(inner) == {"inner"}


async def test_t195_a_symlinked_folder_inside_the_project_is_read(world: World):
    good = world.folder("good")
    world.put_agent(good / "shared/agents")
    (good / ".dragoman").symlink_to("shared")
    approve_all(good)
    assert await world.use(good) == {"good"}


async def test_t195_a_server_of_a_projects_agent_starts_in_the_projects_folder(world: World):
    good, vendored = world.folder("good"), world.folder("good/vendored")
    world.put_agent(good / FOLDER)
    approve_all(good)
    assert await world.use(vendored) == {"good"}


async def test_t195_a_relative_cwd_of_an_entry_is_relative_to_the_project(world: World):
    good, vendored = world.folder("good"), world.folder("good/vendored")
    world.folder("good/tools")
    world.folder("good/vendored/tools2").rename(vendored / "tools")
    world.put_agent(good / FOLDER, AGENT.replace("./tool}", './tool, cwd: "${NAME:-tools}"}'))
    approve_all(good)
    assert await world.use(vendored) == {"tools"}


@pytest.mark.parametrize("place", ["agents", "plugins/p/agents"])
async def test_t195_a_server_of_a_personal_or_plugin_agent_runs_no_program_of_the_folder(
    world: World, place: str
):
    clone = world.folder("clone")
    world.put_agent(Sources.here(clone).config_dir / place)
    approve_all(clone)
    assert [agent.state for agent in find_agents(Sources.here(clone))] == ["ready"]
    assert await world.use(clone) == set()


CLAIMED = {
    "sampling": ["allow", '"${NOPE:-allow}"', '"${NOPE:-al}low"', '"al${NOPE:-low}"'],
    "trusted": ["true", "yes", "1", "1.0", '"${NOPE:-true}"'],
    "roots": ["true", "on", '"${NOPE:-true}"'],
}
UNCLAIMED = (False, "off", None)


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in CLAIMED.items() for value in values]
)
@pytest.mark.parametrize("scope", ["project", "plugin"])
async def test_t195_a_server_of_a_projects_agent_cannot_grant_itself_permissions(
    world: World, field: str, value: str, scope: Scope
):
    text = AGENT.replace("./tool}", f"./tool, {field}: {value}}}")
    agent = parse(text, world.home / "work" / FOLDER / "helper.md", scope)
    assert agent.problems == (f"{field} of a server has no effect here",)
    async with Host({}) as host, open_agent_tools(host, Folders(world.home), agent) as agent_tools:
        assert isinstance(agent_tools.servers, AgentServers)
        own = agent_tools.servers._own
        assert isinstance(own, Host)
        config = own.configuration.servers["own"].config
        assert config is not None
        assert (config.trusted, config.sampling, config.roots) == UNCLAIMED
