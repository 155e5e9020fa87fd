"""The interface by which the host asks a person.

Defines the questions of the host and the answers to them. Front ends and programs implement `Interaction`,
and those of `ElicitsForms`, `ElicitsUrls`, `WaitsForUrls` and `ReviewsSampling` that they can show. The host
asks one question at a time (`questions.py`); a question that is no longer needed is cancelled: the method
that shows it gets `asyncio.CancelledError`. `dragoman.testing.ScriptedUser` is an `Interaction` for tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct, structs

from dragoman.forms import Choice as Choice
from dragoman.forms import FormField, fields_of


class Caller(Struct, frozen=True):
    """The party that makes a call. Grants, questions and the audit log distinguish callers."""

    id: str = "local"
    """The local person or program by default."""


LOCAL_CALLER: Final = Caller()


class RelatedCall(Struct, frozen=True, gc=False):
    """The call, or the request for a resource or prompt, that a server's question belongs to."""

    method: str
    """`tools/call`, `resources/read` or `prompts/get`."""
    name: str
    """The tool's qualified name, the URI of the resource, or the name of the prompt."""
    call_id: str = ""
    """The call id, as in events and hooks; empty for requests that are not calls."""
    caller: Caller = LOCAL_CALLER
    input_key: str = ""
    """The server's key for the question, if it came in an `input_required` result."""
    input_count: int = 1
    """The number of questions in the same `input_required` result."""
    task_id: str = ""
    """The server's id of the task that runs the call."""


class PermissionQuestion(Struct, frozen=True, kw_only=True):
    """May this call be made? Title and arguments come from a server and a model: show them as data."""

    server: str
    """The name of the server; empty for a built-in tool."""
    tool: str
    title: str
    arguments: Mapping[str, Any]
    folder: str = ""
    """The folder in which a shell command would run, if it is not the person's working directory."""
    risk: Literal["reads", "writes", "destroys"] = "writes"
    """Whether the server declares the tool read-only; shown to the person, and not relied on."""
    open_world: bool = True
    """Whether the server declares that the tool deals with more than the server's own data."""
    reason: str = ""
    """Why the person is asked."""
    rule: str = ""
    """The rule that a permanent approval writes; empty if none can be written."""
    server_rule: str = ""
    """The rule that a permanent approval of every tool of the server writes; empty if none can be written."""
    is_rememberable: bool = True
    """False if an approval applies to this call only, because a rule requires the question each time."""
    has_changed: bool = False
    """Whether the tool was allowed before, and its definition has changed since."""
    caller: Caller = LOCAL_CALLER
    """The party that makes the call."""
    call_id: str = ""
    """The call id, as in events and hooks."""
    agent: str = ""
    """The agent that makes the call, if the conversation has given it work; agents may work in parallel."""


class PermissionAnswer(Struct, frozen=True):
    """A person's answer to whether a call may be made."""

    allowed: bool
    message: str | None = None
    """The person's message to the model with a refusal."""
    for_session: bool = False
    """Whether an approval applies to further calls of this tool while this host runs and the definition stays
    the same."""
    always: Literal["user", "local"] | None = None
    """The scope to which a permanent approval is written: everywhere, or in this project."""
    whole_server: bool = False
    """Whether a permanent approval applies to every tool of the server (`PermissionQuestion.server_rule`)."""


class NoInteraction(Exception):
    """Raised by an `Interaction` that cannot reach a person now; its text says what would help."""


class FormElicitation(Struct, frozen=True, kw_only=True):
    """A server asks for some values. Its text is untrusted: show the server's name with it."""

    server: str
    message: str
    schema: Mapping[str, Any]
    """A flat JSON Schema: an object of strings, numbers, booleans and choices, perhaps with defaults."""
    calls: tuple[RelatedCall, ...] = ()
    """The call that it belongs to; several, if it is one of these and not known which."""

    @property
    def fields(self) -> tuple[FormField, ...]:
        """The fields of the form, in order."""
        return fields_of(self.schema)


class FormAnswer(Struct, frozen=True):
    """A person's answer to a form."""

    action: Literal["accept", "decline", "cancel"]
    """`decline`: the person refused; `cancel`: the person left without an answer."""
    content: Mapping[str, Any] = {}
    """The values, if accepted. Fields that are missing take the defaults of the schema; those that are None
    are not sent."""


class UrlElicitation(Struct, frozen=True, kw_only=True):
    """A server asks the person to open a URL before it continues. Show the server's name and the whole URL.

    Nothing has been fetched from the URL, and nothing may be before the person agrees.
    """

    server: str
    message: str
    url: str
    host: str = ""
    """The host that the URL leads to: show it separately from the URL."""
    warnings: tuple[str, ...] = ()
    """Warnings about unusual parts of the URL: show them."""
    elicitation_id: str = ""
    """The server's id of this elicitation; empty if the server sent none."""
    calls: tuple[RelatedCall, ...] = ()
    """The call that it belongs to; several, if it is one of these and not known which."""


class SamplingMessage(Struct, frozen=True):
    """One message of the conversation in a sampling request."""

    role: Literal["user", "assistant"]
    content: tuple[Mapping[str, Any], ...]
    """Blocks as in the specification: `text`, `image`, `audio`, `tool_use`, `tool_result`."""


def blocks_text(blocks: Iterable[Mapping[str, Any]]) -> str:
    """The content of a message on one line, for the person who reviews it."""
    return " ".join(
        str(block["text"]) if block.get("type") == "text" else json.dumps(block, default=str)
        for block in blocks
    )


class SamplingRequest(Struct, frozen=True, kw_only=True):
    """A server asks for an answer of the program's model. All text is untrusted."""

    server: str
    messages: tuple[SamplingMessage, ...]
    max_tokens: int
    """The most tokens of the answer; at most the host's limit."""
    system_prompt: str = ""
    model_hints: tuple[str, ...] = ()
    """Names, or parts of names, of the models that the server prefers, the most preferred first."""
    cost_priority: float | None = None
    speed_priority: float | None = None
    intelligence_priority: float | None = None
    """The importance of each property to the server, from 0 to 1."""
    temperature: float | None = None
    stop_sequences: tuple[str, ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    """Tools that the model may use in its answer. The server runs them, not the host."""
    tool_choice: Literal["auto", "required", "none"] = "auto"
    calls: tuple[RelatedCall, ...] = ()
    """The call that it belongs to; several, if it is one of these and not known which."""

    @property
    def further_texts(self) -> tuple[tuple[str, str], ...]:
        """The complete texts that the model is given besides the system prompt and the messages, by kind. The
        person reviews them too, because a server may put a request into the description of a tool."""
        tools = (("tool", json.dumps(tool, ensure_ascii=False)) for tool in self.tools)
        return (*tools, *(("stop at", each) for each in self.stop_sequences))


class SamplingAnswer(Struct, frozen=True, kw_only=True):
    """The answer of a model."""

    content: tuple[Mapping[str, Any], ...]
    """Blocks as in the specification: `text`, `image`, `audio`, or `tool_use` with `id`, `name`, `input`."""
    model: str
    stop_reason: str = "endTurn"
    """`endTurn`, `stopSequence`, `maxTokens` or `toolUse`."""


class SamplingReview(Struct, frozen=True):
    """A request to the model that a person reviews; in the second review with the model's answer."""

    request: SamplingRequest
    answer: SamplingAnswer | None = None

    @property
    def text(self) -> str:
        """The text that a person may change: of the answer, or of the last message of the request."""
        return "\n".join(str(block["text"]) for block in self._content if block.get("type") == "text")

    def with_text(self, text: str) -> SamplingReview:
        """A copy with this text in that place; images, tool calls and results stay."""
        others = tuple(block for block in self._content if block.get("type") != "text")
        content = (*others, {"type": "text", "text": text})
        if self.answer is not None:
            return structs.replace(self, answer=structs.replace(self.answer, content=content))
        messages = self.request.messages
        role = messages[-1].role if messages else "user"
        changed = (*messages[:-1], SamplingMessage(role, content))
        return structs.replace(self, request=structs.replace(self.request, messages=changed))

    @property
    def _content(self) -> tuple[Mapping[str, Any], ...]:
        if self.answer is not None:
            return self.answer.content
        return self.request.messages[-1].content if self.request.messages else ()


class Sampler(Protocol):
    """The program's model, for servers that ask for its answers. Passed as `sampler` to a host."""

    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        """Has the model continue the conversation. An exception is reported to the server as a refusal,
        without its text."""
        ...


class Interaction(Protocol):
    """Asks a person. What a program passes as `interaction` to a host.

    An `Interaction` whose attribute `asks_in_parallel` is true reaches several people, and is given several
    questions at the same time.
    """

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
        """Shows the URL, opens it if the person agrees, and returns `accept` then. An `Interaction` that is
        not also `WaitsForUrls` returns it when the person has finished with the page."""
        ...


@runtime_checkable
class WaitsForUrls(Protocol):
    """An `Interaction` that can also ask the person whether they are done with a page."""

    async def wait_for_url(self, question: UrlElicitation) -> bool:
        """Called after `accept`, if the call is repeated once the person has finished. Returns whether the
        person finished; False: they gave up. Cancelled when the server reports completion."""
        ...


@runtime_checkable
class ReviewsSampling(Protocol):
    """An `Interaction` that shows a person the sampling requests of servers and the answers of the model."""

    async def review_sampling(self, review: SamplingReview) -> SamplingReview | None:
        """Called twice: before the model is called (`review.answer` is None), and before its answer is sent.
        Returns what to continue with, perhaps with another request or answer; None: refused."""
        ...


@runtime_checkable
class ListsRoots(Protocol):
    """An `Interaction` that knows the roots of the party that makes a call."""

    async def list_roots(self, calls: tuple[RelatedCall, ...]) -> Sequence[Mapping[str, Any]] | None:
        """The roots, each with `uri` and perhaps `name`; None: those of the host."""
        ...


SIGN_IN_SECONDS: Final = 600.0
"""The default time limit for a sign-in."""


class SignInScreen(Protocol):
    """Shows a sign-in to a person, and asks for the decisions it needs."""

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        """Shows the page to sign in at, or opens it. `deliver` takes the URL that the browser ended at, where
        the browser runs on another machine; it returns whether it belongs to this sign-in."""
        ...

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        """Shows the code to enter at the page, for a sign-in on another device."""
        ...

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        """Asks whether the client secret of the entry belongs to this issuer. Called once."""
        ...

    def notice(self, text: str) -> None:
        """Shows the person a message."""
        ...


# Conversations, for classifiers.


class ConversationTurn(Struct, frozen=True):
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str
    """The text; for the assistant also the calls it made. Results of tools are left out, because a server's
    text must not influence the decision on the next call."""


ReadTurns = Callable[[], Sequence[ConversationTurn]]

_conversation: ContextVar[ReadTurns | None] = ContextVar("dragoman conversation", default=None)
"""The conversation of the task that makes a call; a call has no other relation to a conversation."""


@contextmanager
def conversation_for_classifier(turns: ReadTurns) -> Generator[None]:
    """Calls made inside this context belong to this conversation: a classifier is given its turns so far.
    `turns` is called only if a classifier is asked."""
    token = _conversation.set(turns)
    try:
        yield
    finally:
        _conversation.reset(token)


_agent: ContextVar[str] = ContextVar("dragoman agent", default="")


@contextmanager
def calls_of_agent(name: str) -> Generator[None]:
    """Calls made inside this context are calls of an agent: questions about them name the agent."""
    token = _agent.set(name)
    try:
        yield
    finally:
        _agent.reset(token)


def current_agent() -> str:
    """The agent that makes the current call; empty if the conversation itself makes it."""
    return _agent.get()


def current_conversation() -> ReadTurns | None:
    """The turns of the conversation that the current call belongs to."""
    return _conversation.get()
