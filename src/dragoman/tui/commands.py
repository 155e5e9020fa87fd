"""The commands that begin with a slash."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from dragoman.agent.events import Message
from dragoman.agent.models import choose_model
from dragoman.catalog.commands import read_arguments
from dragoman.catalog.prompts import PromptResult
from dragoman.cleaning import one_line
from dragoman.errors import status_phrase
from dragoman.host import Host
from dragoman.tui.completion import CompletionItem, find_prompt

if TYPE_CHECKING:
    from dragoman.tui.app import ConversationApp

COMMANDS: Final = {
    "help": "keys and commands",
    "mcp": "servers; also enable, disable, reconnect NAME|all",
    "permissions": "the rules in effect, and rules for this session",
    "context": "what fills the model's context",
    "compact": "replace the conversation so far by a summary",
    "clear": "begin a new conversation",
    "resume": "continue an earlier conversation",
    "model": "show the model, or use another: /model provider:name",
    "copy": "copy the last answer as it was written",
    "exit": "end (or Ctrl-D)",
}
CHOICES: Final = tuple(CompletionItem(name, about) for name, about in COMMANDS.items())
_COMMAND: Final = re.compile(r"/[^\s/]+(\s|$)")


class CommandLine(Struct, frozen=True):
    """A command as it was typed."""

    name: str
    rest: str


def parse(text: str) -> CommandLine | None:
    """The command in a text; None for a message, also for one that begins with a path."""
    if not _COMMAND.match(text):
        return None
    name, _, rest = text.removeprefix("/").partition(" ")
    return CommandLine(name.strip(), rest.strip())


async def run(app: ConversationApp, line: CommandLine) -> None:
    """Runs the command. Raises `DragomanError`."""
    match line.name:
        case "help":
            from dragoman.tui.screens import help_screen

            app.push_screen(help_screen())
        case "mcp":
            await _mcp(app, line.rest.split())
        case "permissions":
            from dragoman.tui.screens import PermissionsScreen

            app.push_screen(PermissionsScreen(app.host))
        case "context":
            _show_context(app)
        case "resume":
            from dragoman.tui.screens import ResumeScreen

            app.push_screen(ResumeScreen(app.control.options.folder), app.control.resume)
        case "clear":
            app.control.change(structs.replace(app.control.options, resume=None, source="clear"))
        case "compact":
            app.control.compact(line.rest)
        case "model":
            _choose_model(app, line.rest)
        case "copy":
            app.copy_to_clipboard(app.control.turn.last_answer)
            app.notify(
                "The last answer was copied." if app.control.turn.last_answer else "There is no answer yet."
            )
        case "exit" | "quit":
            app.exit(0)
        case _:
            await _run_prompt(app, line)


async def _mcp(app: ConversationApp, words: list[str]) -> None:
    if not words:
        from dragoman.tui.servers_screen import ServersScreen

        app.push_screen(ServersScreen(app.host), app.control.sign_in)
        return
    action, names = words[0], words[1:]
    if action not in ("enable", "disable", "reconnect") or not names:
        app.note("/mcp, /mcp enable|disable|reconnect NAME|all", is_problem=True)
        return
    host = app.host
    act = {"enable": host.enable, "disable": host.disable, "reconnect": host.reconnect}[action]
    for name in list(host.servers) if names == ["all"] else names:
        view = await act(name)
        reason = f": {one_line(view.reason, 200)}" if view.reason else ""
        app.note(f"server {one_line(name, 60)} {status_phrase(view.status)}{reason}")


def _show_context(app: ConversationApp) -> None:
    from dragoman.tui.screens import context_screen, parts_of

    session = app.control.session
    if session is None:
        app.note("The model is being loaded.")
    else:
        app.push_screen(context_screen(parts_of(session), session.conversation.context_limit))


def _choose_model(app: ConversationApp, spec: str) -> None:
    control = app.control
    if not spec:
        app.note(f"The model is {control.options.model.spec}. /model provider:name uses another.")
        return
    model = control.options.model.with_spec(choose_model(spec).spec)
    control.change(structs.replace(control.options, model=model, resume=control.transcript_id))


async def _run_prompt(app: ConversationApp, line: CommandLine) -> None:
    message = await prompt_message(app.host, line)
    if message is None:
        app.note(f"There is no command /{one_line(line.name, 80)}. /help lists them.", is_problem=True)
    else:
        app.control.send(message)


async def prompt_message(host: Host, line: CommandLine) -> Message | None:
    """The text of a server's prompt; None if there is no such prompt. Raises `DragomanError`."""
    prompt = await find_prompt(host, line.name)
    if prompt is None:
        return None
    found = await host.prompts.get(prompt.name, read_arguments(prompt, line.rest))
    return Message(prompt_text(found), shown=f"/{line.name} {line.rest}".strip())


def prompt_text(found: PromptResult) -> str:
    """The messages of a prompt as one message; if there are several roles, each is named."""
    texts = [(message.role, message.content.as_text()) for message in found.messages]
    if all(role == "user" for role, _ in texts):
        return "\n\n".join(text for _, text in texts)
    return "\n\n".join(f"{role}: {text}" for role, text in texts)
