"""Forms that servers want filled in, with hooks before and after.

I own: the order. A hook may answer in the person's place, and may look at what the person answered.
"""

from __future__ import annotations

from dragoman.hooks.points import Hooks
from dragoman.interaction import FillsForms, FormAnswer, FormQuestion


class HookedForms:
    """A `FillsForms` around another."""

    def __init__(self, forms: FillsForms, hooks: Hooks) -> None:
        self._forms = forms
        self._hooks = hooks

    async def fill(self, question: FormQuestion) -> FormAnswer:
        hooks = self._hooks
        answer = None
        if hooks.wants("Elicitation", question.server):
            answer = await hooks.elicited(question.server, question.message, question.schema)
        if answer is None:
            answer = await self._forms.fill(question)
        if hooks.wants("ElicitationResult", question.server):
            answer = await hooks.elicitation_answered(question.server, answer)
        return answer
