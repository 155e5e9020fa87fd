"""Opens one conversation: the host's tools, built-in tools, the model, the system prompt.

The model library is imported in a thread while servers connect, so the first request is sent when both are
ready.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.conversation_hooks import ConversationHooks
from dragoman.agent.definitions import AgentDefinition
from dragoman.agent.models import Load, ModelChoice, load_model
from dragoman.agent.prompt import system_prompt
from dragoman.agent.subagents import SubagentContext, Subagents
from dragoman.agent.transcript import Record, Transcript
from dragoman.host import Host
from dragoman.toolbox import Toolbox

if TYPE_CHECKING:
    from pydantic_ai.models import Model

    from dragoman.agent.loop import Conversation

IMPORT_DELAY_SECONDS: Final = 0.25
"""The longest time for which the import of the model library waits until a server is started."""

EndReason = Literal["prompt_input_exit", "clear", "resume", "other"]


class AgentOptions(Struct, frozen=True, kw_only=True):
    model: ModelChoice
    folder: Path
    extra_folders: tuple[Path, ...] = ()
    max_turns: int = 100
    required_servers: tuple[str, ...] = ()
    """Servers that must be connected before the first request."""
    agent: AgentDefinition | None = None
    """The agent of a file that answers in this conversation."""
    agents: tuple[AgentDefinition, ...] = ()
    """The agents that the model can start with Task."""
    resume: str | None = None
    """The id of the conversation to continue."""
    source: Literal["startup", "clear"] = "startup"
    """The source that hooks of `SessionStart` receive for a new conversation."""

    @property
    def folders(self) -> Folders:
        return Folders(self.folder, self.extra_folders)


class AgentSession:
    """An open conversation with its toolbox, transcript and subagents."""

    def __init__(
        self, conversation: Conversation, toolbox: Toolbox, transcript: Transcript, subagents: Subagents
    ) -> None:
        self.conversation = conversation
        self.toolbox = toolbox
        self.transcript = transcript
        self.subagents = subagents
        self.end_reason: EndReason = "other"
        """The reason that hooks of `SessionEnd` receive."""


@asynccontextmanager
async def open_session(
    host: Host, options: AgentOptions, load: Load = load_model
) -> AsyncGenerator[AgentSession]:
    """Opens a conversation. Raises `ModelNotConfigured`, and `ConfigError` or `NotConnected` for required
    servers. `load`: loads the model; tests pass another function."""
    loading = asyncio.ensure_future(_load_when_connecting(host, options.model, load))
    transcript, source = _transcript(options)
    host.hooks.enter_conversation(transcript.id, str(transcript.path))
    hooks = ConversationHooks(host.hooks)
    work = SubagentContext(options.folders, loading, options.model, load, options.max_turns, transcript)
    subagents = Subagents(host, options.agents, work)
    session: AgentSession | None = None
    try:
        async with open_agent_tools(
            host,
            options.folders,
            options.agent,
            required=options.required_servers,
            extra_tools=subagents.tools(),
        ) as agent_tools:
            context = await _wait_until_ready(
                loading, hooks.started(source), agent_tools.wait_until_connected()
            )
            from dragoman.agent.loop import Conversation, limits_of

            toolbox, model = agent_tools.toolbox, loading.result()
            if options.agent is None and options.source == "startup":  # the agent of a file has fewer tools
                host.report_rules_without_effect((*toolbox.builtin_tools, subagents.task()))
            prompt = options.agent.prompt if options.agent is not None else ""
            history = await asyncio.to_thread(transcript.history) if options.resume is not None else ()
            conversation = Conversation(
                toolbox,
                model,
                system_prompt(options.folder, toolbox, context, prompt),
                limits=limits_of(host, model, options.max_turns),
                record=Record(transcript, history),
                hooks=hooks,
            )
            subagents.on_usage = conversation.add_usage
            session = AgentSession(conversation, toolbox, transcript, subagents)
            yield session
    finally:
        loading.cancel()
        await hooks.ended(session.end_reason if session is not None else "other")


async def _load_when_connecting(host: Host, choice: ModelChoice, load: Load) -> Model:
    """Loads the model. The import of its library takes seconds and slows down other work, so it begins after
    servers have started to connect, and continues while they do."""
    events = host.events()
    try:
        async with asyncio.timeout(IMPORT_DELAY_SECONDS):
            while _is_before_connecting(host):
                await anext(events)
    except (TimeoutError, StopAsyncIteration):
        pass
    del events  # a listener slows down every call a little
    return await load(choice)


def _is_before_connecting(host: Host) -> bool:
    """Whether servers are to be connected, and none has been started yet."""
    views = [view for view in host.servers.values() if not (view.status == "pending" and view.reason)]
    return bool(views) and all(
        view.status == "pending" and view.phase in (None, "connecting") for view in views
    )


async def _wait_until_ready(
    loading: asyncio.Future[Model],
    starting: Coroutine[Any, Any, tuple[str, ...]],
    connecting: Coroutine[Any, Any, None],
) -> tuple[str, ...]:
    """Waits for the model, the hooks and the servers. Returns the texts of hooks for the model."""

    async def loaded() -> None:
        await loading

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(loaded())
            group.create_task(connecting)
            started = group.create_task(starting)
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return started.result()


def _transcript(options: AgentOptions) -> tuple[Transcript, str]:
    """The transcript, and the source that hooks of `SessionStart` receive."""
    if options.resume is not None:
        return Transcript.existing(options.resume), "resume"
    return Transcript.begin(options.folder, options.model.spec), options.source
