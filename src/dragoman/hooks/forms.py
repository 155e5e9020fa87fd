"""Elicitation: what servers ask of a person, with hooks before and after.

A hook may answer a form in the person's place, may refuse a URL, and may look at what the person answered.
Only a person can say that they have opened a URL. Secrets of the server's entry are taken out of the
questions; a URL is shown as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.content.redact import RedactorOf, no_redactor
from dragoman.hooks.active import ActiveHooks
from dragoman.hooks.notices import Notices
from dragoman.interaction import ElicitsForms, ElicitsUrls, FormAnswer, FormElicitation, UrlElicitation
from dragoman.names import ServerName


class _Hooked:
    def __init__(self, hooks: ActiveHooks, redactor_of: RedactorOf) -> None:
        self._hooks = hooks
        self._redactor_of = redactor_of
        self._notices = Notices(hooks)

    async def _answered(self, server: str, message: str, schema: Mapping[str, Any]) -> FormAnswer | None:
        if not self._hooks.wants("Elicitation", server):
            return None
        return await self._hooks.elicited(server, message, schema)

    def _notify(self, server: str) -> None:
        self._notices.give("elicitation_dialog", "A server asks", f"{server} asks something")


class HookedForms(_Hooked):
    """A `ElicitsForms` around another, or around none: then only hooks answer."""

    def __init__(
        self, forms: ElicitsForms | None, hooks: ActiveHooks, redactor_of: RedactorOf = no_redactor
    ) -> None:
        super().__init__(hooks, redactor_of)
        self._forms = forms

    def can_answer(self, server: str) -> bool:
        """Whether a person or a hook may answer the forms of this server."""
        return self._forms is not None or self._hooks.wants("Elicitation", server)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        if redact := self._redactor_of(ServerName(question.server)):
            question = redact.struct(question, frozenset({"server"}))
        answer = await self._answered(question.server, question.message, question.schema)
        if answer is None and self._forms is not None:
            self._notify(question.server)
            answer = await self._forms.elicit_form(question)
        answer = answer or FormAnswer("cancel")
        if self._hooks.wants("ElicitationResult", question.server):
            answer = await self._hooks.elicitation_answered(question.server, answer)
        return answer


class HookedUrls(_Hooked):
    """A `ElicitsUrls` around another."""

    def __init__(self, urls: ElicitsUrls, hooks: ActiveHooks, redactor_of: RedactorOf = no_redactor) -> None:
        super().__init__(hooks, redactor_of)
        self._urls = urls

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        if redact := self._redactor_of(ServerName(question.server)):
            question = redact.struct(question, frozenset({"server", "url"}))
        answer = await self._answered(question.server, f"{question.message} {question.url}".strip(), {})
        if answer is not None and answer.action != "accept":
            return answer.action
        self._notify(question.server)
        action = await self._urls.elicit_url(question)
        if self._hooks.wants("ElicitationResult", question.server):
            return (await self._hooks.elicitation_answered(question.server, FormAnswer(action))).action
        return action
