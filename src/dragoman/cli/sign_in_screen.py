"""Shows a sign-in in the terminal: the page, a spinner while the browser is open, notices.

All output goes to stderr. Ctrl-C ends the sign-in without changes.
"""

from __future__ import annotations

import asyncio
import io
import math
import shutil
import sys
from collections.abc import Callable
from typing import Final

import click

from dragoman.browser import open_page
from dragoman.cleaning import one_line
from dragoman.cli.render.columns import echo_wrapped
from dragoman.cli.render.progress import WAIT_SECONDS, TerminalStatus, spinner
from dragoman.cli.terminal_input import ask_key, columns, indented, is_interactive, read_line, show_keys
from dragoman.cli.terminal_output import is_animated
from dragoman.urls import parse_url


class TerminalSignIn:
    """A `SignInScreen` in the terminal."""

    def __init__(self, server: str, *, uses_browser: bool = True) -> None:
        """`uses_browser`: whether a browser is opened here, if there is one."""
        self._server = server
        self._uses_browser = uses_browser

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        host = click.style(parse_url(url).host, bold=True)
        is_open = self._uses_browser and open_page(url)
        doing = "Your browser opens the page" if is_open else "Open this page in a browser"
        click.echo(f"{doing} to sign in to {one_line(self._server, 80)} at {host}:\n\n{url}\n", err=True)
        if is_open or not is_interactive():
            await _wait("Waiting for the browser to return (Ctrl-C to stop)")
        else:
            await self._ask_for_address(deliver)

    async def _ask_for_address(self, deliver: Callable[[str], bool]) -> None:
        """Asks for the address at which a browser on another machine ended."""
        echo_wrapped(
            "If the browser runs on another machine, it ends at a page that it cannot load. Then paste the "
            "address of that page here.",
            err=True,
        )
        while True:
            click.echo("  address: ", nl=False, err=True)
            try:
                text = (await read_line()).strip()
            except asyncio.CancelledError:  # the browser has returned, or Ctrl-C
                click.echo(err=True)
                raise
            if text and deliver(text):
                return
            echo_wrapped(
                "That address does not belong to this sign-in.", label="! ", colour="yellow", err=True
            )

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        picture = None if complete_url is None else qr_code(complete_url)
        if picture is not None:
            click.echo(picture, err=True)
        or_scan = "" if picture is None else ", or scan the QR code"
        click.echo(f"Open this page on any device{or_scan}:\n\n  {url}\n", err=True)
        click.echo(f"Enter the code  {click.style(code, bold=True)}\n", err=True)
        click.echo("Waiting for the code to be entered (Ctrl-C to stop)", err=True)

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        if not is_interactive():
            return False
        TerminalStatus.hide_current()
        question = (
            f"The client secret of {one_line(server, 80)} will be sent to {one_line(issuer, 200)}. "
            "Was it issued by this authorization server?"
        )
        click.echo(f"\n{click.style('?', fg='yellow', bold=True)} {indented(question, 2)}", err=True)
        meanings = {"y": "yes; remember it for this server", "n": "no"}
        show_keys(meanings)
        return await ask_key(meanings) == "y"

    def notice(self, text: str) -> None:
        TerminalStatus.hide_current()
        echo_wrapped(text, label="! ", colour="yellow", err=True)


async def _wait(words: str) -> None:
    """Shows a spinner until it is cancelled."""
    if not is_animated(sys.stderr):
        click.echo(words, err=True)
        await asyncio.Event().wait()
    line = TerminalStatus()
    try:
        while True:
            line.show(spinner(words))
            await asyncio.sleep(WAIT_SECONDS)
    finally:
        line.hide()


def qr_code(text: str) -> str | None:
    """A QR code of the URL in characters; None if the terminal cannot show it or is too small."""
    if not is_animated(sys.stderr) or "utf" not in (sys.stderr.encoding or "").lower():
        return None
    import segno

    try:
        code = segno.make(text, error="l")
    except segno.DataOverflowError:
        return None
    width, height = code.symbol_size(border=1)
    if width > columns() or math.ceil(height / 2) + _LINES_BELOW > shutil.get_terminal_size().lines:
        return None
    out = io.StringIO()
    code.terminal(out=out, compact=True, border=1)
    return out.getvalue().rstrip("\n")


_LINES_BELOW: Final = 8
"""The number of lines below the QR code, which must not scroll it off the screen."""
