"""The commands of a conversation that is shown line by line."""

from __future__ import annotations

import asyncio
from typing import Final

import click
from msgspec import structs

from dragoman.agent.events import Message
from dragoman.agent.session import AgentOptions, AgentSession
from dragoman.agent.transcript import Transcript, transcripts
from dragoman.cleaning import one_line
from dragoman.errors import NotFound
from dragoman.host import Host
from dragoman.names import counted
from dragoman.permissions.modes import MEANINGS
from dragoman.permissions.rules import BEHAVIOURS
from dragoman.tui.commands import CommandLine, prompt_message

HELP: Final = """\
/help         this list
/mcp          the servers and their state
/tools        the tools that the model is given
/permissions  the rules in effect; with allow, ask or deny and a rule behind it: one more, for this session
/usage        tokens and cost so far
/compact      replace the conversation so far by a summary; after it: what the summary must contain
/clear        begin a new conversation
/resume       earlier conversations in this folder; with a number or an id behind it: continue that one
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
        self.following: AgentOptions | None = None
        """The options of the conversation that replaces this one, if one does."""

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
                self.following = structs.replace(self._options, resume=None, source="clear")
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
        from dragoman.tui.permissions_screen import RULE_HINT, read_rule, rule_text

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
        from dragoman.tui.resume_screen import row

        listed = await asyncio.to_thread(transcripts, self._options.folder)
        found = [info for info in listed if info.first_prompt and info.id != self._session.transcript.id]
        if word:
            number = int(word) if word.isdecimal() else 0
            if number > len(found):
                count = len(found)
                raise NotFound(f"there are {count} earlier conversations here", hint="/resume lists them.")
            name = found[number - 1].id if number else Transcript.existing(word).id
            self.following = structs.replace(self._options, resume=name)
            return
        for number, info in enumerate(found[:SHOWN], 1):
            click.echo(f"{number:3}  {row(info).plain}")
        click.echo("/resume NUMBER continues one." if found else "There are none yet.")
