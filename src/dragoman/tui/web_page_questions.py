"""Questions that need a web page: a page that a server asks the person to open, and a sign-in to a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, Literal

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from dragoman.browser import open_page
from dragoman.cleaning import one_line, visible
from dragoman.interaction import UrlElicitation
from dragoman.tui.question_view import QuestionView, heading

if TYPE_CHECKING:
    from dragoman.tui.app import ConversationApp


Action = Literal["accept", "decline", "cancel"]


class UrlView(QuestionView[Action]):
    """Shows the whole URL and its host. The caller opens the URL after the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer('accept')", "Yes, open it"),
        Binding("n", "answer('decline')", "No"),
        Binding("escape", "answer('cancel')", "Leave"),
    ]

    def __init__(self, question: UrlElicitation) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        asks = "asks you to open a web page first"
        yield Static(heading(question.server, asks, question.calls), classes="heading")
        text = Text()
        for warning in question.warnings:
            text.append(f"! {one_line(warning, 400)}\n", style="red")
        text.append("host  ").append(one_line(question.host, 300), style="bold").append("\n")
        text.append(visible(question.url, 8192), style="cyan")
        text.append("\n\nNothing was opened or fetched. Open it only if you trust the server.", style="dim")
        if question.message:  # below the host and in one line, so that it cannot look like a host
            text.append(f"\n\n“{one_line(question.message, 4096)}”")
        with VerticalScroll(classes="body"):
            yield Static(text)

    def begin(self) -> None:
        self.query_one(VerticalScroll).focus()


class UrlWaitView(QuestionView[bool]):
    """Waits until the person says that the page is done, or gives up."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Done, continue"),
        Binding("n,escape", "answer(False)", "Give up"),
    ]

    def __init__(self, question: UrlElicitation, *, is_open: bool) -> None:
        """`is_open`: whether the page was opened in a browser."""
        super().__init__()
        self._question = question
        self._is_open = is_open

    def compose(self) -> ComposeResult:
        question = self._question
        doing = "The page is open in your browser" if self._is_open else "Open this page in a browser"
        text = Text.assemble(
            (one_line(question.server, 80), "bold"),
            " waits until you are done with the page.\n",
            doing,
            ":\n",
        )
        text.append(visible(question.url, 8192), style="cyan")
        with VerticalScroll(classes="body"):
            yield Static(text)

    def begin(self) -> None:
        self.query_one(VerticalScroll).focus()


class SignInPageView(QuestionView[None]):
    """Shows the page until the browser has returned, or its address was entered here."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.stop", "Stop")]

    def __init__(self, server: str, url: str, deliver: Callable[[str], bool], *, is_open: bool) -> None:
        super().__init__()
        self._server = server
        self._url = url
        self._deliver = deliver
        self._is_open = is_open

    def compose(self) -> ComposeResult:
        doing = "Your browser opens the page" if self._is_open else "Open this page in a browser"
        yield Static(
            Content.assemble(
                f"{doing} to sign in to ", (one_line(self._server, 80), "bold"), ":\n", visible(self._url)
            ),
            markup=False,
        )  # fmt: skip
        yield Static(
            "If the browser runs on another machine, paste the address of the page at which it ended:",
            markup=False,
        )
        yield Input(placeholder="http://127.0.0.1:…", compact=True)
        yield Static("", markup=False, classes="problem")

    def begin(self) -> None:
        self.query_one(Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        if self._deliver(event.value.strip()):
            self.answer(None)
        else:
            self.query_one(".problem", Static).update("That address does not belong to this sign-in.")


class ConfirmView(QuestionView[bool]):
    """A question that is answered with yes or no."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Yes"),
        Binding("n,escape", "answer(False)", "No"),
    ]
    can_focus = True

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        yield Static(Content(visible(self._text, 4096)), markup=False)

    def begin(self) -> None:
        self.focus()


class AppSignIn:
    """A `SignInScreen`."""

    def __init__(self, app: ConversationApp, server: str) -> None:
        self._app = app
        self._server = server

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        is_open = await asyncio.to_thread(open_page, url)
        await self._app.ask(SignInPageView(self._server, url, deliver, is_open=is_open))

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        self._app.note(f"Open {url} on any device, and enter the code {code}")

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        return await self._app.ask(
            ConfirmView(
                f"The client secret of {one_line(server, 80)} will be sent to {one_line(issuer, 200)}. "
                "Was it issued by this authorization server?"
            )
        )

    def notice(self, text: str) -> None:
        self._app.note(text)
