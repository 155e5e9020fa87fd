"""Every exception Dragoman raises.

    DragomanError
    ├── ConfigError               what a person wrote cannot be used
    │   ├── ConfigFileError       … in a file, with line and column
    │   ├── MissingPackage        an optional package is not installed      (an `ImportError`, too)
    │   ├── ModelNotConfigured    no model is chosen, or it cannot be loaded
    │   ├── NotFound              there is no server or rule of the name that a person gave
    │   └── PolicyRefused         an administrator's policy, or the person's own, does not admit a server
    ├── ConnectError              a server could not be reached: server, phase, cause, hint
    │   ├── CommandNotFound       there is no such program
    │   ├── StartFailed           the program is there but did not start or stay up
    │   ├── ConnectTimeout        it did not answer in time
    │   ├── Unreachable           a failure of network, TLS or HTTP: refused, not found, status 503 …
    │   ├── SignInNeeded          the server requires authentication
    │   ├── SignInFailed          an attempt to sign in did not succeed
    │   └── HandshakeFailed       it answered, but not as MCP requires
    ├── CallError                 one call failed; the server may be fine
    │   ├── UnknownTool           no tool of that name                    (an outcome, not raised by `call`)
    │   ├── InvalidArguments      the arguments do not fit the schema     (an outcome)
    │   ├── PermissionRefused     the person or a rule denied it          (an outcome)
    │   ├── RemoteError           the server answered with an error       (an outcome)
    │   ├── NotConnected          the server is not connected
    │   ├── ConnectionLost        the connection ended during the call
    │   ├── CallTimeout           it did not answer in time
    │   ├── HttpError             it answered with an HTTP status instead: 429, 500 …
    │   ├── TaskNotFound          a task is not known, or not any more       (an outcome)
    │   ├── TaskCancelled         a task was cancelled at its server         (an outcome)
    │   ├── InputUnavailable      it asked for input that is not available here (an outcome)
    │   ├── UrlNotOpened          the person did not open a URL that it requires (an outcome)
    │   ├── MalformedReply        it answered something that cannot be read
    │   └── MessageTooLarge       it answered more than the limit
    ├── ModelUnavailable          the provider of a model failed
    ├── StoreUnavailable          the store of a gateway does not answer
    ├── HostNotOpen               the host was used before it was opened
    ├── HostClosed                the host was closed first
    └── WrongLoop                 the host belongs to another event loop

Each error has a stable `code`, takes facts as arguments and composes its message from them. Control
characters in text from a server are escaped here, so that no message can control a terminal. Facts contain no
secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from dragoman.cleaning import one_line, visible

E = TypeVar("E", bound="DragomanError")


class DragomanError(Exception):
    code: ClassVar[str] = "error"

    def __init__(self, sentence: str, *, hint: str | None = None) -> None:
        super().__init__(visible(sentence))
        self.hint = hint

    @property
    def hint(self) -> str | None:
        """Advice on what to do next. It may contain names from a server, so it is cleaned."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        self._hint = None if hint is None else visible(hint)

    def __reduce__(self) -> Any:
        # Errors compose their message from facts, so pickling carries both to another process.
        return _revive, (type(self), str(self), vars(self))


def _revive(kind: type[DragomanError], sentence: str, facts: dict[str, Any]) -> DragomanError:
    error = kind.__new__(kind, sentence)
    vars(error).update(facts)
    return error


def reworded(error: E, how: Callable[[str], str]) -> E:
    """A copy of the error with its message, and every fact that is a text, passed through a function."""
    facts = {name: how(fact) if isinstance(fact, str) else fact for name, fact in vars(error).items()}
    again = type(error).__new__(type(error), how(str(error)))
    vars(again).update(facts)
    return again


class ConfigError(DragomanError):
    code = "config"


class MissingPackage(ConfigError, ImportError):
    """`package` is needed for something that was imported; `extra` installs it."""

    code = "missing-package"

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        self.extra = extra
        super().__init__(
            f"{package}, a package of the extra {extra!r}, is not installed",
            hint=f"In a clone: pip install '.[{extra}]'",
        )


class ConfigFileError(ConfigError):
    """A file has an error. `reason` is the message without the file and position."""

    code = "config-file"

    def __init__(
        self,
        file: str,
        reason: str,
        *,
        line: int | None = None,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.reason = one_line(reason, 500)
        place = "" if line is None else f", line {line}" + ("" if column is None else f", column {column}")
        super().__init__(f"{one_line(file)}{place}: {self.reason}", hint=hint)


class ModelNotConfigured(ConfigError):
    """No model is chosen, or the chosen one cannot be loaded here: no key, no package, no such name."""

    code = "model-not-configured"


class NotFound(ConfigError):
    """There is no server or rule of the name that a person gave."""

    code = "not-found"


class PolicyRefused(ConfigError):
    """Policy does not admit a server."""

    code = "policy"

    def __init__(self, server: str, reason: str) -> None:
        self.server = server
        self.reason = one_line(reason, 500)
        super().__init__(
            f"server {one_line(server, 200)!r} is not admitted: {self.reason}",
            hint="`dragoman config explain` shows the rule and the file it is in.",
        )


class ModelUnavailable(DragomanError):
    """The provider of a model does not answer, or answers with an error."""

    code = "model-unavailable"
    is_too_long = False
    """Whether the conversation is longer than the model can read."""


class StoreUnavailable(DragomanError):
    """The store of a gateway does not answer; `where` says which one."""

    code = "store-unavailable"

    def __init__(self, where: str, cause: str) -> None:
        self.where = where
        self.cause = one_line(cause, 200)
        super().__init__(
            f"the gateway's store does not answer ({where}: {self.cause})",
            hint="Try again when it is back; the gateway connects to it again by itself.",
        )


class HostNotOpen(DragomanError):
    code = "host-not-open"

    def __init__(self) -> None:
        super().__init__("the host is not open yet", hint="Use it inside `async with Host(...) as host:`.")


class HostClosed(DragomanError):
    code = "host-closed"

    def __init__(self) -> None:
        super().__init__("the host is closed", hint="Make calls inside `async with Host(...)`.")


class WrongLoop(DragomanError):
    """A call was made in another event loop than the host's, or the host was to be closed there and its own
    loop does not run."""

    code = "wrong-loop"

    def __init__(self) -> None:
        super().__init__(
            "the host belongs to another event loop",
            hint="Use and close it in the event loop in which it was opened; from another thread with "
            "asyncio.run_coroutine_threadsafe(host.call(…), loop).",
        )


class ConnectError(DragomanError):
    """A server could not be connected. `phase`: the step that failed."""

    code = "connect"

    def __init__(
        self,
        server: str,
        phase: str,
        cause: str,
        *,
        hint: str | None = None,
        exit_code: int | None = None,
        stderr_tail: str = "",
        status: int | None = None,
    ) -> None:
        self.server = server
        self.phase = phase
        self.cause = one_line(cause, 2048)
        self.exit_code = exit_code
        self.status = status
        """The HTTP status, where there was one."""
        self.stderr_tail = visible(stderr_tail)
        super().__init__(f"{server}: {phase} failed: {self.cause}", hint=hint)


class CommandNotFound(ConnectError):
    code = "command-not-found"


class StartFailed(ConnectError):
    code = "start-failed"


class ConnectTimeout(ConnectError):
    code = "connect-timeout"


class HandshakeFailed(ConnectError):
    code = "handshake"


class Unreachable(ConnectError):
    """The network, TLS or HTTP failed. Nothing indicates a fault of the server itself, so a retry may
    succeed."""

    code = "unreachable"
    retry_after_seconds: float | None = None


class SignInNeeded(ConnectError):
    code = "sign-in"
    challenge: str | None = None
    """The server's `WWW-Authenticate` header."""


class SignInFailed(ConnectError):
    """An attempt to sign in did not succeed. Stored tokens are unchanged."""

    code = "sign-in-failed"

    def __init__(self, server: str, cause: str, *, hint: str | None = None) -> None:
        super().__init__(server, "sign-in", cause, hint=hint)


class CallError(DragomanError):
    code = "call"
    is_final = False
    """Whether the call must not be repeated, whatever the error is, because parts of it were already
    answered."""

    def __init__(self, server: str | None, sentence: str, *, hint: str | None = None) -> None:
        self.server = server
        super().__init__(sentence, hint=hint)


class UnknownTool(CallError):
    code = "unknown-tool"

    def __init__(self, name: str, *, near: tuple[str, ...] = (), left_out: str | None = None) -> None:
        """`left_out`: why the tool is left out, although its server has it."""
        self.name = name
        hint = f"Did you mean {', '.join(near)}?" if near else "List the tools to see what there is."
        if left_out is not None:
            hint = f"It is left out: {left_out}."
        super().__init__(None, f"there is no tool named {one_line(name, 200)}", hint=hint)


class InvalidArguments(CallError):
    code = "invalid-arguments"

    def __init__(self, server: str, tool: str, problems: tuple[str, ...]) -> None:
        self.tool = tool
        self.problems = tuple(one_line(problem, 500) for problem in problems)
        super().__init__(
            server, f"the arguments do not fit {one_line(tool, 200)}: " + "; ".join(self.problems)
        )


class PermissionRefused(CallError):
    code = "refused"

    def __init__(self, server: str, tool: str, reason: str) -> None:
        self.tool = tool
        self.reason = one_line(reason, 2048)
        super().__init__(server, f"{one_line(tool, 200)} was not allowed: {self.reason}")


class RemoteError(CallError):
    """A JSON-RPC error that the server itself answered."""

    code = "remote-error"

    def __init__(
        self,
        server: str,
        remote_code: int,
        remote_message: str,
        remote_data: Any = None,
        *,
        status: int | None = None,
    ) -> None:
        self.status = status
        """The HTTP status of the response, if it was not a success."""
        self.remote_code = remote_code
        self.remote_message = remote_message
        self.remote_data = remote_data
        super().__init__(server, f"{server} answered error {remote_code}: {one_line(remote_message, 2048)}")


def status_phrase(status: str) -> str:
    """A status as the predicate of a sentence about a server."""
    return {"failed": "has failed", "needs-auth": "needs authentication"}.get(status, f"is {status}")


class NotConnected(CallError):
    code = "not-connected"

    def __init__(self, server: str, status: str, reason: str | None, *, hint: str | None = None) -> None:
        self.status = status
        self.reason = None if reason is None else one_line(reason, 2048)
        why = (self.reason or "").removeprefix(f"{server}: ")
        super().__init__(server, f"{server} {status_phrase(status)}" + (f": {why}" if why else ""), hint=hint)


def _doubt(may_have_run: bool, was_refused: bool = False) -> str:
    if may_have_run:
        return "; the request may have run"
    return "; the request was refused and has not run" if was_refused else "; the request was not sent"


class ConnectionLost(CallError):
    """The connection ended. `may_have_run` says whether the request had been handed over."""

    code = "connection-lost"

    def __init__(
        self,
        server: str,
        cause: str,
        *,
        may_have_run: bool,
        hint: str | None = None,
        was_refused: bool = False,
    ) -> None:
        self.cause = one_line(cause, 2048)
        self.may_have_run = may_have_run
        self.was_refused = was_refused
        """Whether the server received the request and rejected it because its session no longer exists."""
        self.stderr_tail = ""
        """The last output of a local server that ended, with control characters made visible."""
        super().__init__(
            server,
            f"the connection to {server} was lost: {self.cause}{_doubt(may_have_run, was_refused)}",
            hint=hint,
        )


_TIME_LIMITS = {
    "tools/call": "Raise MCP_TOOL_TIMEOUT, the entry's `timeout` or the call's limit; see its log."
}
_OTHER_TIME_LIMIT = "Raise MCP_REQUEST_TIMEOUT_MS or the request's own limit; see its log."


class CallTimeout(CallError):
    """The host's own deadline passed. Never used for an error that the server sends."""

    code = "timeout"

    def __init__(
        self, server: str, method: str, timeout_seconds: float, *, may_have_run: bool = True
    ) -> None:
        self.method = method
        self.timeout_seconds = timeout_seconds
        self.may_have_run = may_have_run
        super().__init__(
            server,
            f"{server} did not answer {method} within {timeout_seconds:g} s{_doubt(may_have_run)}",
            hint=_TIME_LIMITS.get(method, _OTHER_TIME_LIMIT),
        )


def _plain(seconds: float) -> str:
    """The number without an exponent, however large it is."""
    return f"{seconds:.3f}".rstrip("0").rstrip(".")


class HttpError(CallError):
    """The server answered with an HTTP error status. `retry_after_seconds`: from its `Retry-After`, if it
    sent one."""

    code = "http-status"

    def __init__(
        self,
        server: str,
        status: int,
        cause: str,
        *,
        may_have_run: bool,
        retry_after_seconds: float | None = None,
        challenge: str | None = None,
        hint: str | None = None,
        was_sent: bool = True,
    ) -> None:
        """`was_sent`: true if the server sent this status; false if the credentials could not be obtained."""
        self.status = status
        self.cause = one_line(cause, 2048)
        self.may_have_run = may_have_run
        self.retry_after_seconds = retry_after_seconds
        self.challenge = challenge
        wait = f" It asks to wait {_plain(retry_after_seconds)} s." if retry_after_seconds else ""
        what = f"{server} refused" if was_sent else f"{server} was not called"
        super().__init__(
            server, f"{what}: {self.cause}{_doubt(may_have_run, was_sent)}.{wait}".rstrip("."), hint=hint
        )


class TaskNotFound(CallError):
    """A task is not known: its id is wrong, it has expired, or its server has forgotten it."""

    code = "task-not-found"

    def __init__(self, server: str, task: str, reason: str, hint: str | None = None) -> None:
        """`task`: the id that the host has given it."""
        self.task = one_line(task, 100)
        self.reason = one_line(reason, 500)
        whose = f" of {server}" if server else ""
        super().__init__(
            server,
            f"there is no task {self.task}{whose}: {self.reason}",
            hint=hint or "`dragoman tasks list` shows the tasks that are known.",
        )


class TaskCancelled(CallError):
    """A task was cancelled at its server before it had a result."""

    code = "task-cancelled"

    def __init__(self, server: str, tool: str, message: str) -> None:
        self.tool = tool
        detail = f": {one_line(message, 500)}" if message else ""
        super().__init__(server, f"{server} has cancelled the task of {tool}{detail}")


_INPUT_HINTS = {
    "sampling/createMessage": "A program with a model allows it with `sampling` in the entry of the server.",
    "roots/list": 'Write `"roots": true` into the entry of the server.',
}


class InputUnavailable(CallError):
    """The server asked for input before it answers a request, and no person or hook can provide it."""

    code = "input-unavailable"

    def __init__(self, server: str, method: str, reason: str) -> None:
        self.method = method
        super().__init__(
            server,
            f"{server} asks for input ({one_line(method, 100)}) before it answers: {one_line(reason, 500)}",
            hint=_INPUT_HINTS.get(
                method, "Run it where a person can answer, or answer it with an `Elicitation` hook."
            ),
        )


class UrlNotOpened(CallError):
    """The server requires a URL to be opened before it answers a call, and the person did not do it."""

    code = "url-not-opened"

    def __init__(self, server: str, action: str) -> None:
        """`action`: `decline` or `cancel`."""
        self.action = action
        word = "declined" if action == "decline" else "cancelled"
        super().__init__(
            server,
            f"URL elicitation was {word} by the user: {server} requires the user to open a URL before this "
            "call can be made",
            hint="Make the call again to be asked again.",
        )


class MalformedReply(CallError):
    code = "malformed-reply"

    def __init__(self, server: str, detail: str, *, hint: str | None = None) -> None:
        self.detail = one_line(detail, 500)
        super().__init__(
            server,
            f"malformed reply from {server}: {self.detail}",
            hint=hint or "This is a fault of the server.",
        )


class MessageTooLarge(CallError):
    code = "message-too-large"

    def __init__(self, server: str, limit_bytes: int, method: str | None = None) -> None:
        """`method`: the method whose results have their own limit."""
        self.limit_bytes = limit_bytes
        self.method = method
        to = "" if method is None else f" to {method}"
        setting = "Ask for less, or raise DRAGOMAN_MESSAGE_LIMIT_BYTES."
        super().__init__(
            server,
            f"the reply from {server}{to} is larger than the limit of {limit_bytes} bytes",
            hint=setting if method is None else "This is a fault of the server.",
        )
