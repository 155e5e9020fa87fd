"""The tool Task: work for an agent of a file, with its own context, tools, servers and model."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman import Classification, Host, PermissionAnswer, hook
from dragoman.agent.definitions import parse
from dragoman.agent.events import SubagentEvent, ToolCallStarted
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, open_session
from dragoman.agent.transcript import read_messages, transcripts
from dragoman.errors import ConfigError, NotConnected
from dragoman.testing import InMemoryServer, ScriptedUser
from dragoman.testing.model import Calls, ScriptedModel

pytestmark = pytest.mark.requirement("CFG-13")


def server(name: str) -> InMemoryServer:
    made = InMemoryServer(name)
    made.add_tool("look", lambda arguments, context: f"seen by {name}")
    made.add_tool("touch", lambda arguments, context: "touched")
    both = asyncio.Barrier(2)

    async def meet(arguments: Any, context: Any) -> str:
        async with asyncio.timeout(20):
            await both.wait()
        return "met"

    made.add_tool("meet", meet)
    return made


def agent(*lines: str, body: str = "You are a helper.") -> Any:
    return parse("\n".join(["---", *lines, "---", body]), Path("/x/helper.md"), "user")


class Desk:
    def __init__(self, **models: ScriptedModel) -> None:
        self.models = models
        self.events: list[Any] = []
        self.seen: list[dict[str, Any]] = []
        self.classifier: Any = None
        self.interaction: Any = None

    async def ask(self, *agents: Any, prompt: str = "go", **options: Any) -> str:
        async def load(choice: ModelChoice) -> Any:
            return self.models[choice.name].model

        wanted = AgentOptions(model=ModelChoice("s:main"), folder=Path.cwd(), agents=agents, **options)
        hooks = [hook(self.seen.append, event) for event in ("Stop", "SubagentStop", "UserPromptSubmit")]
        servers = {"one": server("one"), "two": server("two")}
        mode = "auto" if self.classifier else "default" if self.interaction else "bypassPermissions"
        more: Any = {"permission_mode": mode, "classifier": self.classifier, "session_hooks": False}
        more["interaction"] = self.interaction
        async with (
            Host(servers, hooks=hooks, **more) as host,
            open_session(host, wanted, load) as session,
        ):
            session.subagents.on_event = self.events.append
            reply = await session.conversation.run(prompt)
            self.usage = reply.usage
            self.transcript = session.transcript
            return reply.text


def result(model: ScriptedModel) -> str:
    return model.requests[-1][-1].parts[0].content


TASK = [Calls("Task", {"agent": "helper", "prompt": "Look."})]


async def test_an_agent_works_with_its_own_context_and_tools_and_gives_its_answer():
    model = ScriptedModel(TASK, [Calls("mcp__one__look")], "Seen it.", "The helper has seen it.")
    desk = Desk(main=model)
    told = await desk.ask(agent("description: Looks.", "tools: Read, mcp__*__look", "servers: [one]"))

    assert told == "The helper has seen it."
    assert result(model) == "Seen it."
    assert "- helper: Looks." in model_tool_description(model)
    first = model.requests[1]
    assert [part.content for part in first[0].parts] == ["Look."], "it knows nothing of the conversation"
    assert "You are a helper." in (first[-1].instructions or "")
    assert set(model.tools[1]) == {"Read", "read_result", "mcp__one__look"}
    assert model.requests[2][-1].parts[0].content == "seen by one"
    (event,) = [each for each in desk.events if isinstance(each.event, ToolCallStarted)]
    assert isinstance(event, SubagentEvent)
    assert (event.agent, event.agent_id, event.event.tool) == ("helper", "helper-1", "mcp__one__look")


def model_tool_description(model: ScriptedModel) -> str:
    (task,) = [tool for tool in model.definitions[0] if tool.name == "Task"]
    return task.description or ""


async def test_an_agent_has_no_task_tool_and_no_tools_of_other_agents():
    model = ScriptedModel(
        TASK, [Calls("Task", {"agent": "helper", "prompt": "x"}), Calls("mcp__two__look")], "a", "b"
    )
    await Desk(main=model).ask(agent("servers: [one]"))
    assert "Task" not in model.tools[1]
    texts = [part.content for part in model.requests[2][-1].parts]
    assert ["there is no tool" in text.lower() or "unknown tool" in text.lower() for text in texts] == [
        True,
        True,
    ], texts


async def test_an_agent_cannot_call_another_tool_by_its_name():
    calls = [Calls("mcp__one__touch"), Calls("Bash", {"command": "echo hello"}), Calls("mcp__one__look")]
    model = ScriptedModel(TASK, calls, "a", "b")
    await Desk(main=model).ask(agent("tools: mcp__one__look"))
    touched, ran, looked = (part.content for part in model.requests[2][-1].parts)
    assert "no tool" in touched
    assert "no tool" in ran
    assert looked == "seen by one"


async def test_the_end_of_an_agents_work_is_an_event():
    desk = Desk(main=ScriptedModel(TASK, "Seen it.", "Done."))
    await desk.ask(agent("description: Looks."))
    assert [given["hook_event_name"] for given in desk.seen] == ["UserPromptSubmit", "SubagentStop", "Stop"]
    given = desk.seen[1]
    assert (given["agent_type"], given["agent_id"]) == ("helper", "helper-1")
    assert (given["last_assistant_message"], given["stop_hook_active"]) == ("Seen it.", False)
    assert len({given["session_id"] for given in desk.seen}) == 1


TWO_TASKS = [Calls("Task", {"agent": "helper", "prompt": prompt}, prompt) for prompt in ("Look.", "Listen.")]


async def test_agents_started_in_one_turn_run_in_parallel():
    meet = [Calls("mcp__one__meet")]
    desk = Desk(main=ScriptedModel(TWO_TASKS, meet, meet, "Met.", "Met.", "Both have met."))
    assert await desk.ask(agent("servers: [one]")) == "Both have met."
    started = [each for each in desk.events if isinstance(each.event, ToolCallStarted)]
    assert sorted((each.call_id, each.agent_id) for each in started) == [
        ("Listen.", "helper-2"),
        ("Look.", "helper-1"),
    ]


async def test_questions_of_parallel_agents_are_asked_one_at_a_time():
    class Person:
        def __init__(self) -> None:
            self.open, self.most, self.agents = 0, 0, list[str]()

        async def allow(self, question: Any) -> PermissionAnswer:
            self.open += 1
            self.agents.append(question.agent)
            self.most = max(self.most, self.open)
            for _ in range(20):
                await asyncio.sleep(0)
            self.open -= 1
            return PermissionAnswer(True)

    touch = [Calls("mcp__one__touch")]
    desk = Desk(main=ScriptedModel(TWO_TASKS, touch, touch, "Done.", "Done.", "All done."))
    desk.interaction = person = Person()
    assert await desk.ask(agent("servers: [one]")) == "All done."
    assert (sorted(person.agents), person.most) == (["helper-1", "helper-2"], 1)


async def test_a_question_of_the_conversation_itself_names_no_agent():
    person = ScriptedUser(True)
    desk = Desk(main=ScriptedModel([Calls("mcp__one__touch")], "Done."))
    desk.interaction = person
    await desk.ask(agent("servers: [one]"))
    assert [each.agent for each in person.asked] == [""]


async def test_the_transcript_of_an_agent_is_stored_beside_the_conversation():
    desk = Desk(main=ScriptedModel(TASK, [Calls("mcp__one__look")], "Seen it.", "Done."))
    await desk.ask(agent("description: Looks."))
    path = desk.transcript.path.with_name(f"{desk.transcript.id}.helper-1.jsonl")
    assert desk.seen[1]["agent_transcript_path"] == str(path)
    said = [
        str(part.content) for each in read_messages(path) for part in each.parts if hasattr(part, "content")
    ]
    assert said == ["Look.", "seen by one", "Seen it."]
    assert [info.id for info in transcripts()] == [desk.transcript.id]


async def test_an_agent_may_have_another_model_and_its_use_is_counted():
    main, other = ScriptedModel(TASK, "Done."), ScriptedModel("seen " * 500)
    desk = Desk(main=main, other=other)
    await desk.ask(agent("model: s:other"))
    assert len(other.requests) == 1
    assert desk.usage.output_tokens > 500


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (("servers: [three]",), "needs server 'three', which is not configured"),
        (("servers: [one]", "requiredServers: [three]"), "needs server 'three', which is not configured"),
        (("servers: [{one: {command: x}}]",), "has the name of one of the host's"),
        (("servers: [{own: {command: /nonexistent}}]", "requiredServers: [own]"), "own has failed"),
    ],
)
async def test_a_task_that_cannot_start_is_an_error_for_the_model(lines: tuple[str, ...], reason: str):
    model = ScriptedModel(TASK, "It cannot.")
    await Desk(main=model).ask(agent(*lines))
    assert reason in result(model)


async def test_an_agent_that_never_ends_is_stopped():
    model = ScriptedModel(TASK, *[[Calls("mcp__one__look")]] * 2, "It did not end.")
    await Desk(main=model).ask(agent("maxTurns: 2"))
    assert "was stopped after 2 turns" in result(model)


async def test_a_conversation_with_an_agent_has_its_prompt_and_its_tools():
    model = ScriptedModel("Hello.")
    await Desk(main=model).ask(agent=agent("tools: mcp__two__*, Grep"))
    assert set(model.tools[0]) == {
        "Grep",
        "read_result",
        *(f"mcp__two__{name}" for name in ("look", "touch", "meet")),
    }
    assert "You are a helper." in (model.requests[0][-1].instructions or "")


async def test_a_required_server_that_is_missing_is_an_error_before_the_agent_starts():
    model = ScriptedModel("Hello.")
    with pytest.raises(ConfigError, match="needs server 'three', which is not configured"):
        await Desk(main=model).ask(agent=agent("requiredServers: [three]"))
    with pytest.raises(NotConnected, match="own has failed"):
        await Desk(main=model).ask(
            agent=agent("servers: [{own: {command: /nonexistent}}]", "requiredServers: [own]")
        )
    assert model.requests == []


@pytest.mark.requirement("PRM-2")
async def test_a_classifier_is_informed_that_the_task_is_not_from_the_person():
    heard: list[Any] = []

    class Listening:
        async def judge(self, call: Any, conversation: Any) -> Classification:
            heard.append([(turn.role, turn.text) for turn in conversation])
            return Classification("allow", "it listens")

    desk = Desk(main=ScriptedModel(TASK, [Calls("mcp__one__look")], "Seen it.", "Done."))
    desk.classifier = Listening()
    await desk.ask(agent("servers: [one]"), prompt="Have a look.")
    (turns,) = heard
    assert turns[0] == ("user", "Have a look.")
    assert ("assistant", "Look.") in turns
    assert [role for role, _ in turns].count("user") == 1
