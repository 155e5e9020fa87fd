"""The tool Task: the model delegates work to an agent that is defined in a file.

The agent has its own context, tools and servers, and may have another model. The result of the call is the
agent's last answer. The agent's transcript is stored beside the transcript of the conversation. Agents that
are started in one turn run in parallel. Their calls are checked like all others. An agent cannot start other
agents.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dragoman.agent.agent_tools import Folders, open_agent_tools
from dragoman.agent.builtin.workspace import BuiltinToolError
from dragoman.agent.conversation_hooks import ConversationHooks, Subagent
from dragoman.agent.definitions import AgentDefinition
from dragoman.agent.events import AgentEvent, SubagentEvent, Usage
from dragoman.agent.models import Load, ModelChoice
from dragoman.agent.prompt import system_prompt
from dragoman.agent.transcript import Record, Transcript
from dragoman.calls.requests import object_schema
from dragoman.catalog.tools import BuiltinTool
from dragoman.errors import ConfigError, ModelUnavailable
from dragoman.host import Host
from dragoman.interaction import calls_of_agent

if TYPE_CHECKING:
    from pydantic_ai.models import Model

TASK: Final = "Task"

current_call_id: ContextVar[str] = ContextVar("dragoman call of the model", default="")
"""The id of the tool call that is being made."""


class SubagentContext(Struct, frozen=True):
    """The values that all subagents of a conversation share."""

    folders: Folders
    model: Awaitable[Model]
    """The model for agents that name none."""
    choice: ModelChoice
    """The model choice of the conversation."""
    load: Load
    max_turns: int
    transcript: Transcript
    """The transcript of the conversation."""


class Subagents:
    """The agents that the model of one conversation can start."""

    def __init__(self, host: Host, agents: Sequence[AgentDefinition], work: SubagentContext) -> None:
        self._host = host
        self._agents = {agent.name: agent for agent in agents}
        self._work = work
        self.on_event: Callable[[AgentEvent], None] = lambda event: None
        """Receives the events of subagents."""
        self.on_usage: Callable[[Usage], None] = lambda usage: None
        """Receives the usage of each run of a subagent."""

    def tools(self) -> list[BuiltinTool]:
        """The tool Task; an empty list if there are no agents."""
        return [self.task()] if self._agents else []

    def task(self) -> BuiltinTool:
        described = "\n".join(f"- {name}: {agent.description}" for name, agent in self._agents.items())
        return BuiltinTool(
            TASK,
            self._run,
            description=(
                "Gives work to an agent, which has a context and tools of its own and knows nothing of "
                "this conversation: say everything that it needs to know. Its last answer is the "
                f"result. Several calls in one response run in parallel. Agents:\n{described}"
            ),
            input_schema=object_schema(
                {
                    "agent": {"type": "string", "enum": list(self._agents)},
                    "prompt": {"type": "string", "minLength": 1},
                },
                "agent",
                "prompt",
            ),
            # Each call of the agent is checked.
            needs_permission=False,
            is_independent=True,
        )

    async def _run(self, arguments: Mapping[str, Any]) -> str:
        agent = self._agents[str(arguments["agent"])]
        try:
            return await self._answer(agent, str(arguments["prompt"]))
        except (ConfigError, ModelUnavailable) as error:
            raise BuiltinToolError(f"the agent {agent.name} cannot run: {error}") from None

    async def _answer(self, agent: AgentDefinition, prompt: str) -> str:
        from dragoman.agent.loop import Conversation, limits_of

        work, model, call_id = self._work, await self._model(agent), current_call_id.get()
        transcript = work.transcript.begin_subagent(
            agent.name, work.folders.folder, agent.model or work.choice.spec
        )
        agent_id = transcript.id.removeprefix(f"{work.transcript.id}.")
        async with open_agent_tools(self._host, work.folders, agent) as agent_tools:
            await agent_tools.wait_until_connected()
            toolbox = agent_tools.toolbox
            conversation = Conversation(
                toolbox,
                model,
                system_prompt(work.folders.folder, toolbox, (), agent.prompt),
                limits=limits_of(self._host, model, agent.max_turns or work.max_turns),
                record=Record(transcript),
                hooks=ConversationHooks(
                    self._host.hooks, Subagent(agent_id, agent.name, str(transcript.path))
                ),
            )

            def on_event(event: AgentEvent) -> None:
                self.on_event(
                    SubagentEvent(call_id=call_id, agent=agent.name, agent_id=agent_id, event=event)
                )

            try:
                with calls_of_agent(agent_id):
                    reply = await conversation.run(prompt, on_event)
            finally:
                self.on_usage(conversation.usage)
        if reply.stopped_by == "max-turns":
            raise BuiltinToolError(
                f"the agent {agent.name} was stopped after {reply.turns} turns. {reply.text}"
            )
        return reply.text or "(The agent gave no answer.)"

    async def _model(self, agent: AgentDefinition) -> Model:
        if agent.model is None:
            return await self._work.model
        return await self._work.load(self._work.choice.with_spec(agent.model))
