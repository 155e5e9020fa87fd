"""An `Interaction` that answers from a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar

from dragoman.interaction import (
    FormAnswer,
    FormElicitation,
    PermissionAnswer,
    PermissionQuestion,
    SamplingReview,
    UrlElicitation,
)

T = TypeVar("T")
Action = Literal["accept", "decline", "cancel"]


class ScriptedUser:
    """Answers questions in order; the last answer of each kind is repeated.

    Permission questions are answered by the positional answers. Forms, URLs and sampling reviews are offered
    to servers only if answers to them are given.
    """

    def __init__(
        self,
        *answers: bool | PermissionAnswer,
        forms: Sequence[FormAnswer | Mapping[str, Any] | Action] = (),
        urls: Sequence[Action] = (),
        reviews: Sequence[bool | SamplingReview] = (),
    ) -> None:
        """`forms`: each an answer, the values of an accepted form, or an action. `reviews`: each says whether
        the sampling request or answer is sent, or what is sent instead."""
        self._answers = list(answers) or [False]
        self.asked: list[PermissionQuestion] = []
        self.forms: list[FormElicitation] = []
        """The forms that were shown."""
        self.urls: list[UrlElicitation] = []
        self.reviews: list[SamplingReview] = []
        # A host looks for these methods to find out what it may offer to servers.
        if forms:
            self._form_answers = list(forms)
            self.elicit_form = self._elicit_form
        if urls:
            self._url_answers = list(urls)
            self.elicit_url = self._elicit_url
        if reviews:
            self._review_answers = list(reviews)
            self.review_sampling = self._review_sampling

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        answer = _next(self._answers)
        return answer if isinstance(answer, PermissionAnswer) else PermissionAnswer(answer)

    async def _elicit_form(self, question: FormElicitation) -> FormAnswer:
        self.forms.append(question)
        answer = _next(self._form_answers)
        if isinstance(answer, FormAnswer):
            return answer
        return FormAnswer("accept", answer) if isinstance(answer, Mapping) else FormAnswer(answer)

    async def _elicit_url(self, question: UrlElicitation) -> Action:
        self.urls.append(question)
        return _next(self._url_answers)

    async def _review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        self.reviews.append(review)
        answer = _next(self._review_answers)
        if isinstance(answer, SamplingReview):
            return answer
        return review if answer else None


def _next(answers: list[T]) -> T:
    return answers.pop(0) if len(answers) > 1 else answers[0]
