"""The `Interaction` of the application: each question is shown as a widget.

The host asks one question at a time. A question that the host cancels is removed.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from dragoman.browser import open_page
from dragoman.cleaning import one_line
from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    SamplingReview,
    UrlElicitation,
)

if TYPE_CHECKING:
    from dragoman.tui.app import ConversationApp
    from dragoman.tui.question_view import QuestionView

T = TypeVar("T")


class AppInteraction:
    """An `Interaction`. It is created before the application, because the host needs it first."""

    def __init__(self, folder: Path) -> None:
        """`folder`: the person's working directory."""
        self.app: ConversationApp | None = None
        self.folder = folder.resolve()
        self._opened: set[str] = set()
        """URLs that were opened in a browser."""

    async def _ask(self, view: QuestionView[T]) -> T:
        if self.app is None:
            raise NoInteraction("the application is not open")
        return await self.app.ask(view)

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        from dragoman.agent.builtin.files import proposed_change
        from dragoman.tui.permission_question import PermissionView, folder_rules

        diff = None
        if not question.server:
            diff = await asyncio.to_thread(proposed_change, question.tool, question.arguments)
        rules = folder_rules(question, self.folder)
        view = PermissionView(question, diff, is_in_folder=bool(rules))
        answer = await self._ask(view)
        if view.allows_folder and self.app is not None:
            for kind, rule in rules:
                self.app.host.add_rule(kind, rule)
            self._note(f"Changes of files in {one_line(str(self.folder), 200)} are allowed for this session.")
        else:
            self._note(_answer_note(question, answer))
        return answer

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        from dragoman.tui.form import FormView

        answer = await self._ask(FormView(question))
        self._note(f"{one_line(question.server, 80)} asked for information: {_ACTIONS[answer.action]}")
        return answer

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        from dragoman.tui.web_page_questions import UrlView

        action = await self._ask(UrlView(question))
        if action == "accept":
            if await asyncio.to_thread(open_page, question.url):
                self._opened.add(question.url)
            else:
                self._note(f"Open this page in a browser: {question.url}")
        return action

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        from dragoman.tui.web_page_questions import UrlWaitView

        return await self._ask(UrlWaitView(question, is_open=question.url in self._opened))

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        from dragoman.tui.sampling_review import SamplingView

        return await self._ask(SamplingView(review))

    def _note(self, text: str) -> None:
        if self.app is not None:
            self.app.note(text)


_ACTIONS: dict[Any, str] = {"accept": "sent", "decline": "declined", "cancel": "left without an answer"}


def _answer_note(question: PermissionQuestion, answer: PermissionAnswer) -> str:
    tool = one_line(question.tool, 100)
    if not answer.allowed:
        return f"{tool}: refused" + (f": {answer.message}" if answer.message else "")
    if answer.whole_server:
        return f"{tool}: allowed, and every tool of {one_line(question.server, 60)} from now on"
    if answer.always is not None:
        where = "everywhere" if answer.always == "user" else "in this project"
        return f"{tool}: allowed from now on, {where}"
    return f"{tool}: allowed {'for this session' if answer.for_session else 'once'}"
