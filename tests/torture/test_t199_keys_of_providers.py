"""T199: the key of a model provider is sent to that provider only, not to another endpoint, and to no
command."""

import re
from pathlib import Path

import pydantic_ai.providers
import pytest
from msgspec import structs

from dragoman import Host
from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.definitions import parse
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, open_session
from dragoman.testing.model import Calls, ScriptedModel
from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]

pytestmark = pytest.mark.requirement("AUT-11")
HERE = "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("named", "base_url"),
    [
        ("anthropic:claude-opus-5", None),
        ("mistral:large", None),
        ("openai:gpt-5.5", HERE),
        ("openai-chat:other", HERE),
    ],
)
async def test_t199_an_agents_model_of_another_provider_is_not_requested_at_the_conversations_endpoint(
    named: str, base_url: str | None
):
    loaded: list[ModelChoice] = []
    main = ScriptedModel([Calls("Task", {"agent": "helper", "prompt": "go"})], "done")
    helper = ScriptedModel("helped")

    async def load(choice: ModelChoice) -> object:
        loaded.append(choice)
        return (main if choice.name == "llama3" else helper).model

    agent = parse(f"---\nmodel: {named}\n---\nHelp.", Path("/x/helper.md"), "user")
    options = AgentOptions(model=ModelChoice("openai-chat:llama3", HERE), folder=Path.cwd(), agents=(agent,))
    async with Host({}, session_hooks=False) as host, open_session(host, options, load) as session:  # type: ignore[arg-type]
        assert (await session.conversation.run("go")).text == "done"
    assert loaded[1:] == [ModelChoice(named, base_url)]


@pytest.mark.parametrize(
    ("named", "base_url"),
    [("anthropic:claude-opus-5", None), ("mistral:large", None), ("openai:gpt-5.5", HERE)],
)
async def test_t199_a_model_selected_by_the_person_is_not_requested_at_another_providers_endpoint(
    desk: Desk, named: str, base_url: str | None
):
    async with desk.opened() as seat:
        control = seat.app.control
        control.options = structs.replace(control.options, model=ModelChoice("openai-chat:llama3", HERE))
        await seat.send(f"/model {named}")
        await seat.until(lambda: control.options.model.spec == named)
        assert control.options.model == ModelChoice(named, base_url)


def known_keys() -> list[str]:
    """The environment variables in which the model library looks for keys."""
    folder = Path(next(iter(pydantic_ai.providers.__path__)))
    text = "".join(path.read_text() for path in folder.glob("*.py"))
    names = set(re.findall(r"['\"]([A-Z][A-Z0-9_]+)['\"]", text))
    return sorted(name for name in names if re.search(r"_(KEY|TOKEN)(_|$)", name))


async def test_t199_commands_of_a_model_receive_no_provider_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    others = ("ANTHROPIC_AUTH_TOKEN", "OTEL_EXPORTER_OTLP_HEADERS", "DRAGOMAN_SECRETS_PASSPHRASE")
    names = [*known_keys(), *others]
    assert {"OPENROUTER_API_KEY", "GEMINI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"} <= set(names)
    for name in names:
        monkeypatch.setenv(name, f"canary-{name}")
    host = Host({}, permission_mode="bypassPermissions")
    async with host, open_agent_tools(host, Folders(tmp_path)) as agent_tools:
        text = (await agent_tools.toolbox.call("Bash", {"command": "env"})).text
    assert "PATH=" in text
    assert re.findall(r"canary-\w+", text) == []
