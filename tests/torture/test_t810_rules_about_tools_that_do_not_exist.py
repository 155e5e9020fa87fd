"""T810: a deny or ask rule about a built-in tool that does not exist, or an argument that it does not have,
is reported when a conversation begins: it has no effect. A path
that begins with a variable is reported as well, because rules do not replace it."""

import asyncio
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, open_session
from dragoman.events import ConfigurationChanged
from dragoman.testing.model import ScriptedModel

pytestmark = pytest.mark.requirement("PRM-1")

REPORTED = {
    "Agent": "no built-in tool has that name",
    "WebFetch(url=*evil*)": "no built-in tool has that name",
    "Task(subagent_type=writer)": "Task has no argument subagent_type (it has agent, prompt)",
    "Glob(glob=*.env)": "Glob has no argument glob (it has pattern, path, file_path, file, filePath)",
    "Read(file_path=$PWD/.env)": "rules replace $HOME and no other variable, such as $PWD",
    "Write(path=${WORK}/*)": "rules replace $HOME and no other variable, such as ${WORK}",
}
VALID_RULES = [
    "Task",
    "task(Agent=writer)",
    "Read(path=*/.env)",
    "Grep(glob=*.env)",
    "Read(file_path=$HOME/.ssh/*)",
    "Read(file_path=*/$name)",
    "Bash(rm *)",
    "tool_search",
]
VALID_RULES += [
    "read_mcp_resource(uri=a:*)",
    "Read(!readOnly)",
    "Task(subagent_type!=writer)",
    "*",
    "mcp__a",
    "Web*",
]


async def reported(home: Path, rule: str, kind: str) -> list[str]:
    async with Host({}, rules={kind: [rule]}) as host:
        events = host.events(ConfigurationChanged)

        async def load(choice: ModelChoice) -> object:
            return ScriptedModel("3").model

        options = AgentOptions(model=ModelChoice("test:test"), folder=home)
        async with open_session(host, options, load):  # type: ignore[arg-type]
            found: list[str] = []
            try:
                async with asyncio.timeout(0):
                    async for event in events:
                        found += event.problems
            except TimeoutError:
                return found
    return found


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(("rule", "why"), REPORTED.items(), ids=str)
async def test_t810_a_rule_without_effect_is_reported(home: Path, rule: str, why: str, kind: str):
    assert await reported(home, rule, kind) == [
        f"{kind} rule {rule} of dynamic (code): {why}; it has no effect"
    ]


@pytest.mark.parametrize("rule", VALID_RULES)
async def test_t810_other_rules_are_not_reported(home: Path, rule: str):
    assert await reported(home, rule, "deny") == []


async def test_t810_an_allow_rule_is_not_reported(home: Path):
    assert await reported(home, "Agent", "allow") == []
