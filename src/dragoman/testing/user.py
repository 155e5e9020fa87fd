"""A person who answers from a script."""

from __future__ import annotations

from dragoman.interaction import PermissionAnswer, PermissionQuestion


class ScriptedUser:
    """Answers permission questions in order; the last answer holds for all that follow."""

    def __init__(self, *answers: bool | PermissionAnswer) -> None:
        self._answers = list(answers) or [False]
        self.asked: list[PermissionQuestion] = []

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        self.asked.append(question)
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return answer if isinstance(answer, PermissionAnswer) else PermissionAnswer(answer)
