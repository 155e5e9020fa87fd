"""A conversation line by line, with its commands, for every terminal, screen reader and pipe.

Text from the model and from servers is shown with visible characters only. Ctrl-C stops the running turn and
keeps the conversation; at the prompt it ends the conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, Final, TypeVar

import click
from msgspec import structs

from dragoman.agent.events import (
    AgentEvent,
    ContextCompacted,
    Message,
    PromptRefused,
    RetryScheduled,
    SubagentEvent,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TranscriptIncomplete,
)
from dragoman.agent.mentions import expanded
from dragoman.agent.session import AgentOptions, AgentSession, open_session
from dragoman.agent.transcript import Transcript, transcripts
from dragoman.cleaning import one_line, visible
from dragoman.cli import exit_codes
from dragoman.cli.agent.start import StartOptions, run, show_failed_servers
from dragoman.cli.common import cancelled_by_ctrl_c
from dragoman.cli.render.text import show_error
from dragoman.cli.terminal_input import read_answer
from dragoman.cli.terminal_interaction import TerminalInteraction
from dragoman.errors import DragomanError, NotFound
from dragoman.host import Host
from dragoman.names import counted
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS
from dragoman.questions import is_cancelled
from dragoman.tui.commands import CommandLine, parse, prompt_message

T = TypeVar("T")


def converse(start_options: StartOptions, options: AgentOptions) -> int:
    async def work(host: Host) -> int:
        next_options: AgentOptions | None = options
        while next_options is not None:
            next_options = await _conversation(host, next_options)
        return exit_codes.OK

    return run(start_options, options, work, TerminalInteraction(options.folder))


async def _conversation(host: Host, options: AgentOptions) -> AgentOptions | None:
    """Runs one conversation. Returns the options of the next one, or None if the person quits."""
    async with open_session(host, options) as session:
        tools = len(session.toolbox.tools())
        click.echo(f"{options.model.spec}, {counted(tools, 'tool')}. /help lists the commands.")
        if count := len(session.conversation.history):
            click.echo(f"The conversation is continued after {count} messages.")
        show_failed_servers(host, "/mcp shows the servers.")
        session.subagents.on_event = EventPrinter().event
        session.conversation.expand = partial(_expanded, host, options)
        commands = Commands(host, session, options)
        while True:
            prompt = await _read_prompt()
            if prompt is None or prompt.strip() in ("/exit", "/quit"):
                session.end_reason = "prompt_input_exit"
                return None
            if prompt.strip():
                await _handle(commands, session, prompt.strip())
            if commands.next_options is not None:
                session.end_reason = "clear" if commands.next_options.resume is None else "resume"
                return commands.next_options


async def _expanded(host: Host, options: AgentOptions, text: str) -> str:
    """The message with the files and resources that it mentions."""
    text, problems = await expanded(text, host, options.folder, options.extra_folders)
    for problem in problems:
        click.echo(f"! {problem}")
    return text


async def _read_prompt() -> str | None:
    """A line, or several that end with a backslash; None at the end of the input."""
    lines: list[str] = []
    while True:
        click.echo("> " if not lines else "… ", nl=False)
        line = await read_answer()
        if line is None:
            click.echo()
            return None
        lines.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            return "\n".join(lines)


async def _handle(commands: Commands, session: AgentSession, prompt: str) -> None:
    line = parse(prompt)
    if line is None:
        await _ask(session, Message(prompt))
    elif line.name == "compact":
        await _interruptible(session.conversation.compact(EventPrinter().event, instructions=line.rest))
    else:
        message = await _interruptible(commands.run(line))
        if message is not None:
            await _ask(session, message)


async def _ask(session: AgentSession, message: Message) -> None:
    shown = EventPrinter()
    reply = await _interruptible(session.conversation.run(message, shown.event))
    shown.end()
    if reply is not None and reply.stopped_by != "end":
        click.echo(reply.stopped_text)


async def _interruptible(work: Coroutine[Any, Any, T]) -> T | None:
    """Runs the work. Ctrl-C cancels only the work; the conversation continues."""
    task = asyncio.create_task(work)
    try:
        with cancelled_by_ctrl_c(task):
            return await task
    except asyncio.CancelledError:
        if not task.cancelled() or is_cancelled():
            raise
        click.echo("\nInterrupted.")
    except DragomanError as error:
        show_error(error)
    return None


class EventPrinter:
    """Prints the events of one prompt."""

    def __init__(self) -> None:
        self._is_in_line = False
        self._running = 0
        self._is_named = False
        """Whether results name their tool, because several calls are running at the same time."""

    def event(self, event: AgentEvent) -> None:
        match event:
            case TextDelta(text):
                click.echo(visible(text, 1_000_000), nl=False)
                self._is_in_line = not text.endswith("\n")
            case ToolCallStarted():
                arguments = ", ".join(f"{name}={value!r}" for name, value in event.arguments.items())
                self._line(f"→ {one_line(event.tool, 80)}({one_line(arguments, 200)})")
                self._running += 1
                self._is_named = self._running > 1
            case ToolCallFinished():
                mark = "✗" if event.outcome.is_error else "✓"
                tool = f"{one_line(event.tool, 80)}: " if self._is_named else ""
                self._line(f"  {mark} {tool}{one_line(event.outcome.text, 200)}")
                self._running -= 1
            case RetryScheduled():
                self._line(f"… {event.reason}; next attempt in {event.wait_seconds:.0f} s")
            case PromptRefused():
                self._line(f"… a hook refused the message: {one_line(event.reason, 300)}")
            case TranscriptIncomplete():
                self._line(f"! {event.text}")
            case SubagentEvent(event=ToolCallStarted() as started):
                self._line(f"  [{event.agent}] → {one_line(started.tool, 80)}")
            case ContextCompacted():
                sizes = f"{event.tokens_before} → {event.tokens_after}"
                self._line(f"… the conversation was summarized: about {sizes} tokens")
            case _:
                pass

    def end(self) -> None:
        if self._is_in_line:
            click.echo()

    def _line(self, text: str) -> None:
        self.end()
        self._is_in_line = False
        click.echo(text)


HELP: Final = """\
/help         this list
/mcp          the servers and their state
/tools        the tools that the model is given
/permissions  the rules in effect; /permissions allow|ask|deny RULE adds a rule for this session
/usage        tokens and cost so far
/compact      replace the conversation so far by a summary; /compact TEXT says what it must contain
/clear        begin a new conversation
/resume       earlier conversations in this folder; /resume NUMBER|ID continues one of them
/server:name  a prompt of a server
/exit         end (or Ctrl-D)"""
SHOWN: Final = 20
"""How many earlier conversations are listed."""


class Commands:
    """Runs commands in one conversation."""

    def __init__(self, host: Host, session: AgentSession, options: AgentOptions) -> None:
        self._host = host
        self._session = session
        self._options = options
        self.next_options: AgentOptions | None = None
        """The options of the conversation that replaces this one; None if this one continues."""

    async def run(self, line: CommandLine) -> Message | None:
        """Runs the command. Returns a message for the model, if there is one. Raises `DragomanError`."""
        match line.name:
            case "help":
                click.echo(HELP)
            case "mcp":
                self._show_servers()
            case "tools":
                for tool in self._session.toolbox.tools():
                    click.echo(f"{tool.name}  {one_line(tool.title, 80)}")
            case "usage":
                self._show_usage()
            case "permissions":
                self._permissions(line.rest)
            case "clear":
                self.next_options = structs.replace(self._options, resume=None, source="clear")
            case "resume":
                await self._resume(line.rest)
            case _:
                message = await prompt_message(self._host, line)
                if message is None:
                    click.echo(f"There is no command /{one_line(line.name, 80)}. /help lists them.")
                return message
        return None

    def _show_servers(self) -> None:
        for name, view in self._host.servers.items():
            reason = f"  {one_line(view.reason, 200)}" if view.reason else ""
            click.echo(f"{one_line(name, 60)}  {view.status}  {counted(view.tool_count, 'tool')}{reason}")

    def _show_usage(self) -> None:
        conversation = self._session.conversation
        usage = conversation.usage
        cost = "" if usage.cost_usd is None else f", ${usage.cost_usd:.4f}"
        click.echo(
            f"{usage.input_tokens} tokens in, {usage.output_tokens} out{cost}; the context holds about "
            f"{conversation.context_tokens}."
        )

    def _permissions(self, text: str) -> None:
        from dragoman.tui.screens import RULE_HINT, read_rule, rule_text

        if text:
            rule = read_rule(text)
            if rule is None:
                click.echo(RULE_HINT)
                return
            self._host.add_rule(*rule)
        for rule in sorted(self._host.rules, key=lambda each: BEHAVIOURS.index(each.behaviour)):
            click.echo(rule_text(rule).plain)
        mode = self._host.permission_mode
        click.echo(f"Where no rule applies, mode {mode}: {MEANINGS[mode]}.")

    async def _resume(self, word: str) -> None:
        from dragoman.tui.screens import conversation_row

        listed = await asyncio.to_thread(transcripts, self._options.folder)
        found = [info for info in listed if info.first_prompt and info.id != self._session.transcript.id]
        if word:
            number = int(word) if word.isdecimal() else 0
            if number > len(found):
                count = len(found)
                raise NotFound(f"there are {count} earlier conversations here", hint="/resume lists them.")
            name = found[number - 1].id if number else Transcript.existing(word).id
            self.next_options = structs.replace(self._options, resume=name)
            return
        for number, info in enumerate(found[:SHOWN], 1):
            click.echo(f"{number:3}  {conversation_row(info).plain}")
        click.echo("/resume NUMBER continues one." if found else "There are no earlier conversations here.")
