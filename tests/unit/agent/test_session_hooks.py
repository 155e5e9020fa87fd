"""The hook events of a conversation: beginning, prompts, answers, summaries, end."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, hook
from dragoman.agent.context import SUMMARIZE, SUMMARY_HEADING
from dragoman.agent.events import Message, PromptRefused, QueuedMessagesSent
from dragoman.agent.loop import STOP_REFUSED
from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, AgentSession, open_session
from dragoman.agent.transcript import transcripts
from dragoman.hooks.events import STOP_LIMIT
from dragoman.testing import InMemoryServer
from dragoman.testing.model import Calls, ScriptedModel

pytestmark = pytest.mark.requirement("PRM-5")


@asynccontextmanager
async def talking(
    model: ScriptedModel, *hooks: Any, servers: Any = None, **options: Any
) -> AsyncIterator[AgentSession]:
    async def load(choice: ModelChoice) -> Any:
        return model.model

    wanted = AgentOptions(model=ModelChoice("scripted:m"), folder=Path.cwd(), **options)
    host = Host(servers or {}, hooks=hooks, session_hooks=False, permission_mode="bypassPermissions")
    async with host, open_session(host, wanted, load) as session:
        yield session


def texts(model: ScriptedModel, request: int = -1) -> list[str]:
    """What the last message of a request says."""
    return [part.content for part in model.requests[request][-1].parts]


async def test_a_conversation_is_reported_from_its_beginning_to_its_end():
    seen: list[dict[str, Any]] = []
    events = ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")
    async with talking(ScriptedModel("Hello."), *(hook(seen.append, event) for event in events)) as session:
        await session.conversation.run("Hi")
        session.end_reason = "prompt_input_exit"
        transcript = session.transcript

    common = {"session_id": transcript.id, "transcript_path": str(transcript.path), "cwd": str(Path.cwd())}
    assert all(common.items() <= given.items() for given in seen)
    assert [
        {key: value for key, value in given.items() if key not in (*common, "permission_mode")}
        for given in seen
    ] == [
        {"hook_event_name": "SessionStart", "source": "startup"},
        {"hook_event_name": "UserPromptSubmit", "prompt": "Hi"},
        {"hook_event_name": "Stop", "stop_hook_active": False, "last_assistant_message": "Hello."},
        {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
    ]
    assert transcript.path.is_file()


async def test_session_start_context_is_added_to_the_first_prompt_also_after_resuming():
    def context(given: dict[str, Any]) -> dict[str, Any]:
        return {"hookSpecificOutput": {"additionalContext": f"It began by {given['source']}."}}

    begins = hook(context, "SessionStart")
    model = ScriptedModel("Hello.", "Again.")
    async with talking(model, begins) as session:
        await session.conversation.run("Hi")
    async with talking(model, begins, resume=session.transcript.id) as session:
        await session.conversation.run("Hi again")
    assert ["It began by startup." in (request[-1].instructions or "") for request in model.requests] == [
        True,
        False,
    ]
    assert "It began by resume." in (model.requests[1][-1].instructions or "")


async def test_a_refused_prompt_never_reaches_the_model_or_the_transcript():
    refuses = hook(
        lambda given: {"decision": "block", "reason": "no keys"} if "sk-" in given["prompt"] else None,
        "UserPromptSubmit",
    )
    model = ScriptedModel("Hello.")
    async with talking(model, refuses) as session:
        reply = await session.conversation.run("my key is sk-1")
        assert (reply.stopped_by, reply.reason, reply.text) == ("hook", "no keys", "")
        assert (await session.conversation.run("Hi")).text == "Hello."
        assert "sk-1" not in session.transcript.path.read_text()
    assert len(model.requests) == 1


async def test_context_of_hooks_precedes_the_prompt_and_lists_show_the_prompt():
    adds = hook(
        lambda given: {"hookSpecificOutput": {"additionalContext": "It is Monday."}}, "UserPromptSubmit"
    )
    model = ScriptedModel("Hello.")
    async with talking(model, adds) as session:
        await session.conversation.run("Hi")
    assert texts(model) == ["It is Monday.", "Hi"]
    assert [info.first_prompt for info in transcripts()] == ["Hi"]


async def test_queued_messages_are_prompts_too():
    server = InMemoryServer("desk")
    server.add_tool("look", lambda arguments, context: "seen")
    refuses = hook(
        lambda given: {"decision": "block", "reason": "no"} if given["prompt"] == "bad" else None,
        "UserPromptSubmit",
    )
    model, events = ScriptedModel([Calls("mcp__desk__look")], "Done."), list[Any]()
    async with talking(model, refuses, servers={"desk": server}) as session:
        session.conversation.queued.append(Message("bad"))
        session.conversation.queued.append(Message("good"))
        await session.conversation.run("go", events.append)
    assert texts(model) == ["good"]
    assert [event for event in events if isinstance(event, PromptRefused | QueuedMessagesSent)] == [
        PromptRefused(prompt="bad", reason="no"),
        QueuedMessagesSent(("good",)),
    ]


async def test_a_queued_message_refused_after_the_last_answer_ends_the_turn():
    refuses = hook(
        lambda given: {"decision": "block", "reason": "no"} if given["prompt"] == "bad" else None,
        "UserPromptSubmit",
    )
    stopped: list[Any] = []
    async with talking(ScriptedModel("Done."), refuses, hook(stopped.append, "Stop")) as session:
        session.conversation.queued.append(Message("bad"))
        reply = await session.conversation.run("go")
    assert (reply.text, reply.stopped_by, session.conversation.queued) == ("Done.", "end", [])
    assert len(stopped) == 1


async def test_a_message_queued_while_a_stop_hook_runs_is_sent():
    model = ScriptedModel("Done.", "That, too.")
    said = ["And that?"]

    def late(given: dict[str, Any]) -> None:
        if said:
            session.conversation.queued.append(Message(said.pop()))

    async with talking(model, hook(late, "Stop")) as session:
        reply = await session.conversation.run("go")
    assert (reply.text, reply.turns) == ("That, too.", 2)
    assert texts(model) == ["And that?"]


async def test_a_stop_hook_makes_the_model_continue_and_is_informed_of_it():
    active: list[bool] = []

    def once(given: dict[str, Any]) -> dict[str, Any] | None:
        active.append(given["stop_hook_active"])
        return None if given["stop_hook_active"] else {"decision": "block", "reason": "run the tests"}

    model = ScriptedModel("Done.", "Tests pass.")
    async with talking(model, hook(once, "Stop")) as session:
        reply = await session.conversation.run("fix it")
    assert (reply.text, reply.turns) == ("Tests pass.", 2)
    assert active == [False, True]
    assert texts(model) == [f"{STOP_REFUSED}\n\nrun the tests"]


async def test_the_number_of_continuations_by_a_stop_hook_is_limited():
    always = hook(lambda given: {"decision": "block", "reason": "more"}, "Stop")
    model = ScriptedModel(*["Done."] * (STOP_LIMIT + 1))
    async with talking(model, always) as session:
        reply = await session.conversation.run("go")
    assert (reply.stopped_by, reply.turns) == ("end", STOP_LIMIT + 1)


async def test_hooks_are_run_for_a_summary_and_add_context_after_it():
    seen: list[Any] = []

    def note(given: dict[str, Any]) -> dict[str, Any]:
        seen.append(
            (
                given["hook_event_name"],
                given.get("trigger"),
                given.get("custom_instructions"),
                given.get("source"),
            )
        )
        return {"hookSpecificOutput": {"additionalContext": "Still Monday."}} if "source" in given else {}

    model = ScriptedModel("Hello.", "They greeted.", "Yes.")
    async with talking(
        model, hook(note, "PreCompact"), hook(note, "SessionStart", matcher="compact")
    ) as session:
        await session.conversation.run("Hi")
        await session.conversation.compact(instructions="Keep the names.")
        await session.conversation.run("Still there?")
    assert seen == [
        ("PreCompact", "manual", "Keep the names.", None),
        ("SessionStart", None, None, "compact"),
    ]
    assert texts(model, 1) == [f"{SUMMARIZE}\n\nKeep the names."]
    begin = [part.content for part in model.requests[2][0].parts]
    assert begin == [f"{SUMMARY_HEADING}\n\nThey greeted.", "Still Monday.", "The user's last message:\n\nHi"]
