"""Shows the events of a turn: text, tool calls, their progress and results."""

from __future__ import annotations

from dragoman.agent.events import (
    AgentEvent,
    ContextCompacted,
    PromptRefused,
    QueuedMessagesSent,
    ResponseFinished,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallFinished,
    ToolCallProgressed,
    ToolCallStarted,
    TranscriptIncomplete,
)
from dragoman.cleaning import one_line
from dragoman.tui.blocks import NoteBlock, PromptBlock, ToolBlock
from dragoman.tui.conversation import ConversationView


class TurnView:
    """Shows the events of one conversation in its view."""

    def __init__(self, conversation: ConversationView) -> None:
        self._conversation = conversation
        self._running: dict[str, ToolBlock] = {}
        """The running calls by id."""
        self._response_start = 0
        """The number of blocks before the current response."""
        self._text: list[str] = []
        """The text of the current response."""
        self.activity = ""
        """A text about what the model is doing."""
        self.last_answer = ""
        """The text of the newest response, as the model wrote it."""

    def begin(self) -> None:
        self.activity = "Thinking"
        self._begin_response()

    def _begin_response(self) -> None:
        self._response_start = len(self._conversation.blocks)
        self._text = []

    def show(self, event: AgentEvent) -> None:
        match event:
            case TextDelta():
                self.activity = "Writing"
                self._text.append(event.text)
                self._conversation.add_text(event.text)
            case ThinkingDelta():
                self.activity = "Thinking"
            case ToolCallStarted():
                block = ToolBlock(event.call_id, event.tool, event.arguments)
                self._running[event.call_id] = block
                self._conversation.add(block)
                self._name_activity()
            case ToolCallProgressed():
                self._show_progress(event)
            case ToolCallFinished():
                if (block := self._running.pop(event.call_id, None)) is not None:
                    block.finish(event.outcome)
                    self._conversation.update_block(block)
                self._name_activity()
            case ResponseFinished():
                self._conversation.end_answer()
                self.last_answer = "".join(self._text) or self.last_answer
                self._begin_response()
            case RetryScheduled():
                self._conversation.discard_since(self._response_start)
                self._text.clear()
                words = f"{event.reason}; next attempt in {event.wait_seconds:.0f} s"
                self._conversation.add(NoteBlock(words, is_problem=True))
                self._begin_response()
            case ContextCompacted():
                sizes = f"about {event.tokens_before} → {event.tokens_after} tokens"
                self._conversation.add(NoteBlock(f"The conversation was summarized: {sizes}."))
                self._begin_response()
            case PromptRefused():
                words = f"A hook refused the message {one_line(event.prompt, 80)!r}: {event.reason}"
                self._conversation.add(NoteBlock(words, is_problem=True))
            case TranscriptIncomplete():
                self._conversation.add(NoteBlock(event.text, is_problem=True))
            case SubagentEvent():
                self._show_subagent(event)
            case QueuedMessagesSent():
                for text in event.prompts:
                    self._conversation.add(PromptBlock(text))
                self._begin_response()

    def _show_subagent(self, event: SubagentEvent) -> None:
        """Shows the activity of a subagent as a line below its call of Task."""
        if isinstance(event.event, ToolCallStarted):
            self.activity = f"{one_line(event.agent, 40)}: {one_line(event.event.tool, 60)}"
            if (block := self._running.get(event.call_id)) is not None:
                block.message = self.activity
                self._conversation.update_block(block)

    def _name_activity(self) -> None:
        count = len(self._running)
        self.activity = "Thinking" if not count else "1 call" if count == 1 else f"{count} calls"

    def _show_progress(self, event: ToolCallProgressed) -> None:
        block, progress = self._running.get(event.call_id), event.progress
        if block is None:
            return
        block.progress = progress.progress / progress.total if progress.total else None
        block.message = progress.message or ("" if progress.total else f"{progress.progress:g}")
        self._conversation.update_block(block)

    def interrupt(self) -> None:
        """Marks the running calls as interrupted."""
        for block in self._running.values():
            block.interrupt()
            self._conversation.update_block(block)

    def end(self) -> None:
        self._running.clear()
        self._conversation.end_answer()

    def toggle_last(self) -> None:
        for block in reversed(self._conversation.blocks):
            if isinstance(block, ToolBlock):
                block.is_open = not block.is_open
                self._conversation.update_block(block)
                return
