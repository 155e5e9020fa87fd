"""The interface by which a person is asked.

Defines the questions of the host and the answers to them. Front ends and programs implement `Interaction`;
one that can also show forms has `fill`. `dragoman.testing.ScriptedUser` is one for tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct


class Caller(Struct, frozen=True):
    """The party that makes a call. Grants, questions and the audit log tell callers apart."""

    id: str = "local"
    """The local person or program by default."""


LOCAL_CALLER: Final = Caller()


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """May this call be made? Title and arguments come from a server and a model: show them as data."""

    server: str
    """Empty for a built-in tool."""
    tool: str
    title: str
    arguments: Mapping[str, Any]
    risk: Literal["reads", "writes", "destroys"] = "writes"
    """As the server declares it; shown to the person, and not relied on."""
    reaches_out: bool = True
    """Whether the server declares that it deals with more than the server's own data."""
    reason: str = ""
    """Why it is asked."""
    rule: str = ""
    """The rule that a lasting yes writes; empty where none can be kept."""
    is_rememberable: bool = True
    """False where a yes holds for this call only, because a rule wants to be asked each time."""
    has_changed: bool = False
    """Whether it was allowed before, and its definition is another since."""
    caller: Caller = LOCAL_CALLER
    """The party that makes the call."""


class PermissionAnswer(Struct, frozen=True):
    """A person's answer to whether a call may be made."""

    allowed: bool
    message: str | None = None
    """What the person says to the model along with a no."""
    for_session: bool = False
    """Whether a yes holds for further calls of this tool, as it is now, while this host runs."""
    always: Literal["user", "local"] | None = None
    """The scope to which a lasting yes is written: everywhere, or in this project."""


class NobodyToAsk(Exception):
    """Raised by an `Interaction` that cannot reach a person now; its text says what would help."""


class FormElicitation(Struct, frozen=True, kw_only=True):
    """A server asks for some values. Its text is untrusted: show the server's name with it."""

    server: str
    message: str
    schema: Mapping[str, Any]
    """A flat JSON Schema: an object of strings, numbers, booleans and choices, perhaps with defaults."""


class FormAnswer(Struct, frozen=True):
    """A person's answer to a form."""

    action: Literal["accept", "decline", "cancel"]
    content: Mapping[str, Any] = {}
    """The values, if accepted. Left out fields take the defaults of the schema."""


class UrlElicitation(Struct, frozen=True, kw_only=True):
    """A server asks the person to open a URL before it continues. Show the server's name and the whole URL.

    Nothing has been fetched from it, and nothing may be before the person said yes.
    """

    server: str
    message: str
    url: str


class Interaction(Protocol):
    """Asks a person. What a program passes as `interaction` to a host."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        """Asks whether a call may be made. One question at a time."""
        ...


@runtime_checkable
class ElicitsForms(Protocol):
    """An `Interaction` that can also ask for values."""

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        """Shows the form and returns what the person enters."""
        ...


@runtime_checkable
class ElicitsUrls(Protocol):
    """An `Interaction` through which a person can be sent to a page."""

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        """Returns `accept` when the person agreed and has been there."""
        ...


SIGN_IN_SECONDS: Final = 600.0
"""How long a person has to sign in, unless it is said otherwise."""


class SignInScreen(Protocol):
    """What a person sees of a sign-in, and decides."""

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        """Shows the page to sign in at, or opens it. `deliver` takes the URL that the browser ended at, where
        the browser runs on another machine; it returns whether it belongs to this sign-in."""
        ...

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        """Shows the code to enter at the page, for a sign-in on another device."""
        ...

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        """Whether the client secret of the entry belongs to this issuer. Asked once."""
        ...

    def notice(self, text: str) -> None:
        """Something that the person should know."""
        ...
