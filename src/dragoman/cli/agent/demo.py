"""`dragoman demo --agent`: a conversation with a scripted model. Needs no key and no network.

The model's answers are fixed texts of this module; everything else is real: tools, results, permission, the
loop. In a terminal the person answers the questions. Without a terminal the demonstration answers them, and
prints that it does.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dragoman.agent.models import ModelChoice
from dragoman.agent.session import AgentOptions, open_session
from dragoman.cleaning import one_line
from dragoman.cli.agent.plain import EventPrinter
from dragoman.cli.common import run_with_host
from dragoman.cli.terminal_input import is_interactive
from dragoman.cli.terminal_interaction import TerminalInteraction
from dragoman.config.scopes import Sources
from dragoman.host import Host
from dragoman.interaction import Interaction, PermissionAnswer, PermissionQuestion

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model

    from dragoman.testing.model import Calls, Says, ScriptedModel

INTRODUCTION: Final = (
    "A conversation with a scripted model: its texts are fixed. The tools, their results and the permission "
    "question are real. No key, no network."
)
PROMPTS: Final = (
    "How many deployments are there in the table, and which of them took exactly 999 seconds?",
    "Thank you. Write that down in report.md.",
)
ROWS: Final = 20_000
RULES: Final = {"allow": ["mcp__demo"]}
_HANDLE: Final = re.compile(r'read_result\(handle="([0-9a-f]+)"')


def converse(sources: Sources, folder: Path) -> bool:
    """Runs the conversation. Returns whether every step succeeded."""
    interaction: Interaction = TerminalInteraction() if is_interactive() else _AllowsAll()
    return run_with_host(
        sources,
        lambda host: _work(host, folder),
        interaction=interaction,
        rules=RULES,
        audit=False,
        session_hooks=False,
    )


async def _work(host: Host, folder: Path) -> bool:
    script = scripted_model()

    async def load(choice: ModelChoice) -> Model:
        return script.model

    options = AgentOptions(model=ModelChoice("scripted:demonstration"), folder=folder)
    click.echo(f"\n{INTRODUCTION}\n")
    async with open_session(host, options, load) as session:
        for prompt in PROMPTS:
            click.echo(f"> {prompt}")
            shown = EventPrinter()
            await session.conversation.run(prompt, shown.event)
            shown.end()
            click.echo()
    click.echo("With a model of your own: set a key (docs/guides/models.md), and type `dragoman`.")
    return not script.has_responses_left


class _AllowsAll:
    """Allows every call. Used where there is no terminal."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        click.echo(f"? {question.tool} needs permission: {one_line(question.reason, 200)}")
        click.echo("  yes (the demonstration answers, because there is no terminal)")
        return PermissionAnswer(True)


def scripted_model() -> ScriptedModel:
    from dragoman.testing.model import Calls, Says, ScriptedModel

    return ScriptedModel(
        [
            Says(("I am a scripted model. ", "I look at the table, and paint a picture meanwhile: ")),
            Says(("both calls only read, so they run in parallel.\n",)),
            Calls("mcp__demo__table", {"rows": ROWS}),
            Calls("mcp__demo__picture", {"size": 32}),
        ],
        _search,
        _answer,
        [
            Says(("Writing a file needs your permission.\n",)),
            Calls("Write", {"file_path": "report.md", "content": f"# Deployments\n\n{ROWS} in all.\n"}),
        ],
        _finish,
    )


def _search(messages: Sequence[ModelMessage]) -> list[Says | Calls]:
    """Searches the large result, using the handle that the model got with its beginning."""
    from dragoman.testing.model import Calls, Says

    found = _HANDLE.search(_last_results(messages))
    handle = found[1] if found is not None else ""
    return [
        Says(("The table is too large to be read whole. I search it by its handle.\n",)),
        Calls("read_result", {"handle": handle, "grep": "/,999$/"}),
    ]


def _answer(messages: Sequence[ModelMessage]) -> list[Says | Calls]:
    from dragoman.testing.model import Says

    count = _last_results(messages).count(",999")
    return [Says((f"There are {ROWS} deployments. ", f"{count} of them took exactly 999 seconds."))]


def _finish(messages: Sequence[ModelMessage]) -> list[Says | Calls]:
    from dragoman.testing.model import Says

    if "not allowed" in _last_results(messages):
        return [Says(("As you wish: I did not write it, and do not try it in another way.",))]
    return [Says(("It is in report.md, in a folder that is deleted when this demonstration ends.",))]


def _last_results(messages: Sequence[ModelMessage]) -> str:
    return "\n".join(str(getattr(part, "content", "")) for part in messages[-1].parts)
