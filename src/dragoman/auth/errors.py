"""The errors of signing in and of refreshing tokens. Internal; the host raises `SignInNeeded` or
`SignInFailed` with the same text.
"""

from __future__ import annotations

from dragoman.cleaning import one_line


class AuthProblem(Exception):
    """Base of these errors. Contains no secret, and only cleaned text of servers."""

    def __init__(self, cause: str, hint: str | None = None) -> None:
        self.cause = one_line(cause, 500)
        self.hint = hint
        super().__init__(self.cause)


class Refused(AuthProblem):
    """A document or an answer of a server violates a rule; no secret was sent."""


class Unavailable(AuthProblem):
    """The authorization server could not be reached or is overloaded; stored tokens stay valid."""


class Rejected(AuthProblem):
    """The authorization server answered with an OAuth error. `error`: its code, such as `invalid_grant`."""

    def __init__(self, error: str, description: str) -> None:
        self.error = error
        super().__init__(f"{error}: {description}" if description else error)


class Declined(AuthProblem):
    """The person declined, or ended the attempt."""
