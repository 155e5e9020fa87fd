"""`dragoman demo`: a short demonstration with real calls to the built-in server."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import click
import msgspec

from dragoman.calls.outcome import CallOutcome
from dragoman.cleaning import visible
from dragoman.cli import exit_codes
from dragoman.cli.common import run_with_host
from dragoman.cli.options import json_option
from dragoman.cli.render import json
from dragoman.cli.render.progress import ProgressLine
from dragoman.cli.terminal_interaction import CommandLineUser
from dragoman.config.load import Configuration, load
from dragoman.config.scopes import Sources
from dragoman.content.blocks import ImageBlock
from dragoman.demo.picture import Pixel, pixels
from dragoman.demo.server import demo_server
from dragoman.errors import MissingPackage, PolicyRefused
from dragoman.host import Host
from dragoman.names import counted
from dragoman.version import VERSION

BURST = 1000
IN_FLIGHT = 64
PICTURE_SIZE = 28
TABLE_ROWS = 20_000


@click.command("demo")
@click.option("--agent", is_flag=True, help="A conversation with a scripted model (extra: agent).")
@json_option
def command(agent: bool, as_json: bool) -> None:
    """Starts the built-in demo server, in this process and in a separate process, and calls its tools.

    Needs no network, no key and no configuration.
    """
    if agent:
        _converse(as_json)
    work = _run_as_json if as_json else _run_as_text
    sources = Sources.here(given={"demo": demo_server(), "piped": _piped_entry()}, only_given=True)
    _check_policy(load(sources))
    # Running the demonstration allows its calls.
    user = CommandLineUser(sources, assumes_yes=True)
    succeeded = _in_temporary_folder(lambda: run_with_host(sources, work, interaction=user))
    sys.exit(exit_codes.OK if succeeded else exit_codes.FAILED)


def _converse(as_json: bool) -> NoReturn:
    if as_json:
        raise click.UsageError("--json cannot be combined with --agent")
    try:
        import pydantic_ai  # noqa: F401  # pyright: ignore[reportUnusedImport]: the parts import it later

        from dragoman.cli.agent.demo import converse
    except ImportError:
        raise MissingPackage("pydantic-ai-slim", "agent") from None
    sources = Sources.here(given={"demo": demo_server()}, only_given=True)
    _check_policy(load(sources))
    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        succeeded = _in_temporary_folder(lambda: converse(sources, Path(folder)))
    sys.exit(exit_codes.OK if succeeded else exit_codes.FAILED)


def _in_temporary_folder(work: Callable[[], bool]) -> bool:
    """Runs the work with a configuration folder that is deleted afterwards."""
    before = os.environ.get("DRAGOMAN_CONFIG_DIR")
    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        os.environ["DRAGOMAN_CONFIG_DIR"] = folder
        try:
            return work()
        finally:
            os.environ.pop("DRAGOMAN_CONFIG_DIR")
            if before is not None:
                os.environ["DRAGOMAN_CONFIG_DIR"] = before


def _check_policy(configuration: Configuration) -> None:
    for name, given in configuration.sources.given.items():
        server = configuration.admit(name, given)
        if server.eligibility == "refused":
            raise PolicyRefused(name, server.reason or "")


def _piped_entry() -> Mapping[str, Any]:
    source = Path(__file__).parents[3]  # the folder of this package, for the other process
    return {"command": sys.executable, "args": ["-m", "dragoman.demo"], "env": {"PYTHONPATH": str(source)}}


class _DemoCall(NamedTuple):
    """One call of the demonstration."""

    title: str
    tool: str
    arguments: Mapping[str, Any]
    show: Callable[[CallOutcome], Iterator[str]]
    fails: bool = False


def _text(outcome: CallOutcome) -> Iterator[str]:
    yield visible(outcome.text)


def _sum(outcome: CallOutcome) -> Iterator[str]:
    yield f"{visible(outcome.text)}  {_dim(_compact(outcome.structured))}"


def _picture(outcome: CallOutcome) -> Iterator[str]:
    image = next(block for block in outcome.content if isinstance(block, ImageBlock))
    yield f"{image.mime_type}, {len(image.decode()):,} bytes"
    if sys.stdout.isatty() and click.get_current_context().color is not False:
        # Two pixels of the picture are shown as one character.
        rows = pixels(PICTURE_SIZE)
        for upper, lower in zip(rows[::2], rows[1::2]):
            yield "".join(_cell(above, below) for above, below in zip(upper, lower)) + "\x1b[0m"


def _table(outcome: CallOutcome) -> Iterator[str]:
    saved = sum(file.size_bytes for file in outcome.saved)
    yield f"{saved:,} bytes saved; a model gets {len(outcome.text):,} characters of them"
    yield from map(_dim, outcome.text.splitlines()[:3])
    yield _dim("…")


_CALLS = (
    _DemoCall("A sum, with structured content", "add", {"a": 40, "b": 2}, _sum),
    _DemoCall("A slow count that reports its progress", "count", {"to": 40, "seconds": 1.6}, _text),
    _DemoCall("A picture", "picture", {"size": PICTURE_SIZE}, _picture),
    _DemoCall("A table too large for a model", "table", {"rows": TABLE_ROWS}, _table),
    _DemoCall("An error of a tool: text for the model, not a crash", "fail", {}, _text, fails=True),
    _DemoCall("Wrong arguments: found before the call", "add", {"a": "forty", "b": 2}, _text, fails=True),
)


async def _run_as_text(host: Host) -> bool:
    started = time.perf_counter()
    click.echo(f"\n  {_bold(f'Dragoman {VERSION}')} · an MCP host for Python\n")
    succeeded = await _introduce(host)
    for call in _CALLS:
        succeeded &= await _run_call(host, call)
    succeeded &= await _burst(host)
    seconds = time.perf_counter() - started
    click.echo(f"  {_bold('That is all')} ({seconds:.1f} s). Both servers end here; nothing stays behind.\n")
    click.echo(f"  Next, servers of your own:   {_cyan('dragoman mcp add NAME COMMAND_OR_URL')}")
    click.echo(f"  The tools of the demo:       {_cyan('dragoman tools --mcp-config demo')}")
    click.echo(f"  One call:                    {_cyan('dragoman call add a=40 b=2 --mcp-config demo')}")
    click.echo(f"  Everything else:             {_cyan('dragoman --help')}\n")
    return succeeded


async def _introduce(host: Host) -> bool:
    started = time.perf_counter()
    views = await host.ready()
    spent = time.perf_counter() - started
    places = {"demo": "in this process", "piped": "in a process of its own, over pipes"}
    for name, view in views.items():
        connected = view.status == "connected"
        about = f"{counted(view.tool_count, 'tool')} over MCP {view.protocol_version}, {places[name]}"
        click.echo(f"  {_mark(connected)} {_bold(f'{name:<5}')}  {about if connected else view.reason}")
    click.echo(_dim(f"    connected in parallel in {spent * 1000:.0f} ms\n"))
    return all(view.status == "connected" for view in views.values())


async def _run_call(host: Host, call: _DemoCall) -> bool:
    name = f"mcp__demo__{call.tool}"
    click.echo(f"  {_bold(call.title)}\n  {_cyan('›')} {_cyan(name)} {_compact(call.arguments)}")
    with ProgressLine("    ") as line:
        outcome = await host.call(name, call.arguments, on_progress=line.update)
    first, *rest = call.show(outcome)
    spent = f"  {outcome.duration_seconds * 1000:.1f} ms" if outcome.duration_seconds else ""
    click.echo(f"  {_mark(not outcome.is_error)} {first}{_dim(spent)}")
    for text in rest:
        click.echo(f"    {text}")
    click.echo()
    return outcome.is_error == call.fails


async def _burst(host: Host) -> bool:
    click.echo(f"  {_bold(f'{BURST:,} sums through the pipe, {IN_FLIGHT} at a time')}")
    numbers = iter(range(BURST))
    sums: list[int] = []

    async def worker() -> None:
        for number in numbers:
            outcome = await host.call("mcp__piped__add", {"a": number, "b": 1})
            sums.append(outcome.raise_for_error().structured["sum"])

    started = time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    seconds = time.perf_counter() - started
    correct = sorted(sums) == list(range(1, BURST + 1))
    about = f"every one correct, {BURST / seconds:,.0f} calls a second"
    click.echo(f"  {_mark(correct)} {about}{_dim(f'  {seconds * 1000:.0f} ms')}\n")
    return correct


async def _run_as_json(host: Host) -> bool:
    await host.ready()
    outcomes = [await host.call(f"mcp__demo__{call.tool}", call.arguments) for call in _CALLS]
    json.echo([json.outcome(outcome) for outcome in outcomes])
    return all(outcome.is_error == call.fails for outcome, call in zip(outcomes, _CALLS))


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _mark(good: bool) -> str:
    return click.style("✓", fg="green") if good else click.style("✗", fg="red")


def _bold(text: str) -> str:
    return click.style(text, bold=True)


def _dim(text: str) -> str:
    return click.style(text, dim=True)


def _cyan(text: str) -> str:
    return click.style(text, fg="cyan")


def _cell(above: Pixel, below: Pixel) -> str:
    r, g, b = above
    s, t, u = below
    return f"\x1b[38;2;{r};{g};{b}m\x1b[48;2;{s};{t};{u}m▀"
