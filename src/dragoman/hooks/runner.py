"""Runs the hooks of one event concurrently, each within its time limit.

Every behaviour of a hook (it hangs, crashes, writes without end, returns invalid answers) becomes a
`HookAnswer`. None is left running when the caller is cancelled or the host closes. `active.py` finds the
hooks that an event triggers; `merging.py` combines their answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import json
import os
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

import msgspec
from msgspec import structs

from dragoman.cleaning import one_line
from dragoman.errors import ConfigError
from dragoman.hooks import commands, verdicts
from dragoman.hooks.declared import CommandHook, FunctionHook, Hook, HookInput, HttpHook, UnusableHook
from dragoman.hooks.events import CONNECTION_EVENTS
from dragoman.hooks.http import HttpHookFailure, HttpHooks
from dragoman.hooks.verdicts import HookAnswer
from dragoman.json_values import copied
from dragoman.surrogates import replace_lone_surrogates
from dragoman.wire.codec import Unreadable, decode_as

COMMANDS_AT_ONCE: Final = 16
"""The maximum number of programs that run at the same time; a hook's time limit begins when it starts. Hooks
of events that nothing waits for have a separate limit of the same size, so that slow ones do not delay
calls."""
STDERR_CHARACTERS: Final = 300
END_SECONDS: Final = 5.0

_CLOSING: Final = "the host is closing"
_CANCELLED: Final = "it was cancelled"

T = TypeVar("T")


class EventInput:
    """One event, in the form that its hooks are given."""

    def __init__(self, event: str, facts: Mapping[str, Any]) -> None:
        self.event = event
        self.facts = facts

    def for_function(self) -> HookInput:
        """A separate copy for each function, so that it cannot change what the next function or the tool is
        given."""
        given = dict(self.facts)
        if (arguments := given.get("tool_input")) is not None:
            given["tool_input"] = copied(arguments)
        return given

    @functools.cached_property
    def as_json(self) -> bytes:
        given = self.for_function()
        try:
            return msgspec.json.encode(given)
        except UnicodeEncodeError:  # a lone surrogate: JSON has an escape for it, UTF-8 has not
            return json.dumps(given).encode()


class _Work(NamedTuple):
    """A hook that takes time and has not started yet."""

    number: int
    hook: Hook
    begin: Callable[[], Coroutine[Any, Any, HookAnswer]]
    output: object = None
    """The return value of a function, if it must be awaited."""

    def drop(self) -> None:
        """Drops the work, without the warning about coroutines that were never awaited."""
        if inspect.iscoroutine(self.output):
            self.output.close()


class Runner:
    def __init__(self, cwd: str, environ: Mapping[str, str] = os.environ) -> None:
        self._cwd = cwd
        self._environ = environ
        self._places = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._unawaited_places = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._http = HttpHooks()
        self._tasks: set[asyncio.Task[HookAnswer]] = set()
        self._limits: dict[asyncio.Timeout, asyncio.Future[None]] = {}
        """The time limit of each hook that runs, and a future that is resolved when the hook has ended."""
        self._closed = False

    def run(
        self, hooks: Sequence[Hook], event_input: EventInput
    ) -> list[HookAnswer] | Coroutine[Any, Any, list[HookAnswer]]:
        """Runs the hooks. Returns their answers in declared order, without empty ones. Plain functions have
        answered when it returns; other hooks have to be awaited."""
        answers: dict[int, HookAnswer] = {}
        works: list[_Work] = []
        try:
            for number, hook in enumerate(hooks):
                output = self._begin(number, hook, event_input)
                if isinstance(output, _Work):
                    works.append(output)
                elif output is not None:
                    answers[number] = output
        except BaseException:  # a function ends the program
            for work in works:
                work.drop()
            raise
        return self._finished(answers, works) if works else list(answers.values())

    async def _finished(self, answers: dict[int, HookAnswer], works: Sequence[_Work]) -> list[HookAnswer]:
        if len(works) == 1:  # no task: iterations of the loop cost more than most functions
            answers[works[0].number] = await self._contained(works[0])
        else:
            answers |= await self._together(works)
        return [answers[number] for number in sorted(answers)]

    async def close(self) -> None:
        """Ends all hooks: those that wait to be started, and those that are running."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(now)
        for task in self._tasks:
            task.cancel()
        if ends := [*self._limits.values(), *self._tasks]:
            await asyncio.wait(ends, timeout=END_SECONDS)
        await self._http.close()

    def _begin(self, number: int, hook: Hook, event_input: EventInput) -> HookAnswer | _Work | None:
        """Starts a hook: returns the answer of a plain function, or the remaining work of any other hook."""
        if self._closed:
            return _failure(hook, _CLOSING)
        what = hook.what
        if isinstance(what, FunctionHook):
            try:
                output = what.function(event_input.for_function())
            except (Exception, asyncio.CancelledError) as error:  # border: a program's own code
                return _failure(hook, _raised(error))
            if output is None:
                return None
            if type(output) is dict or isinstance(output, Mapping):  # the first is more common, and quicker
                return _returned(hook, cast("Mapping[str, Any]", output))
            return _Work(number, hook, lambda: self._awaited(hook, output), output)
        match what:
            case CommandHook():
                return _Work(number, hook, lambda: self._command(hook, what, event_input))
            case HttpHook():
                return _Work(number, hook, lambda: self._post(hook, what, event_input))
            case UnusableHook(reason):
                return _failure(hook, reason)

    async def _together(self, works: Sequence[_Work]) -> dict[int, HookAnswer]:
        tasks: dict[asyncio.Task[HookAnswer], _Work] = {}
        for work in works:
            task = asyncio.create_task(self._contained(work))
            tasks[task] = work
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(lambda _, work=work: work.drop())
        try:
            await asyncio.wait(tasks)
        except asyncio.CancelledError:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=END_SECONDS)
            raise
        return {
            work.number: _failure(work.hook, _CANCELLED) if task.cancelled() else task.result()
            for task, work in tasks.items()
        }

    async def _contained(self, work: _Work) -> HookAnswer:
        """Converts every exception of a hook to an answer, except a cancellation of this task."""
        try:
            return await work.begin()
        except TimeoutError:
            seconds = work.hook.timeout_seconds
            return _failure(work.hook, _CLOSING if self._closed else f"it took longer than {seconds:g} s")
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return _failure(work.hook, _CANCELLED)
        except _NOT_JSON as error:
            return _failure(work.hook, f"the event cannot be written as JSON: {one_line(str(error), 200)}")

    async def _in_time(self, hook: Hook, work: Awaitable[T]) -> T:
        over = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(hook.timeout_seconds) as limit:
            self._limits[limit] = over
            try:
                return await work
            finally:
                del self._limits[limit]
                over.set_result(None)

    async def _awaited(self, hook: Hook, output: object) -> HookAnswer:
        result = output
        if inspect.isawaitable(output):
            try:
                result = await self._in_time(hook, _awaited(output))
            except _Raised as raised:
                return _failure(hook, str(raised))
        if result is None or isinstance(result, Mapping):
            return _returned(hook, cast("Mapping[str, Any] | None", result)) or HookAnswer(hook=hook.name)
        problem = f"it returned {type(result).__name__}, not a dict or None"
        return _unreadable(hook, _as_bytes(result), problem)

    async def _command(self, hook: Hook, what: CommandHook, event_input: EventInput) -> HookAnswer:
        given = event_input.as_json
        try:
            env = commands.environment(self._environ, self._facts(event_input))
            is_unawaited = event_input.event in CONNECTION_EVENTS
            async with self._unawaited_places if is_unawaited else self._places:
                if self._closed:
                    return _failure(hook, _CLOSING)
                command = commands.run(what.command, given, env=env, cwd=self._cwd)
                return _judged(hook, await self._in_time(hook, command))
        except commands.CommandFailure as failure:
            return _failure(hook, str(failure))

    async def _post(self, hook: Hook, what: HttpHook, event_input: EventInput) -> HookAnswer:
        given = event_input.as_json
        try:
            async with self._http.slots_of(what):
                if self._closed:
                    return _failure(hook, _CLOSING)
                return _decided(hook, await self._in_time(hook, self._http.send(what, given)))
        except (HttpHookFailure, ConfigError) as failure:
            return _failure(hook, str(failure))

    def _facts(self, event_input: EventInput) -> dict[str, str]:
        return {
            "DRAGOMAN_HOOK_EVENT": event_input.event,
            "DRAGOMAN_SESSION_ID": str(event_input.facts.get("session_id", "")),
            "DRAGOMAN_PROJECT_DIR": self._cwd,
            # Hooks written for Claude Code find their files by this name.
            "CLAUDE_PROJECT_DIR": self._cwd,
        }


class _Raised(Exception):
    """Describes what a function raised."""


async def _awaited(output: Awaitable[object]) -> object:
    try:
        return await output
    except Exception as error:  # border: a program's own code, which may raise TimeoutError itself
        raise _Raised(_raised(error)) from None


_NOT_JSON: Final = (TypeError, ValueError, OverflowError, RecursionError)
"""The exceptions of encoding values that JSON cannot represent."""


def _judged(hook: Hook, ended: commands.Ended) -> HookAnswer:
    """The answer that follows from a program's exit code and output."""
    if ended.exit_code == 0:
        return _decided(hook, ended.stdout)
    words = ended.stderr.decode("utf-8", "replace").strip()
    if ended.exit_code == 2:
        return verdicts.blocked(hook.name, words, is_managed=hook.is_managed)
    how = f"exit code {ended.exit_code}" if ended.exit_code > 0 else f"signal {-ended.exit_code}"
    last = one_line(words.rpartition("\n")[2][:STDERR_CHARACTERS])
    return _failure(hook, f"it ended with {how}" + (f": {last}" if last else ""))


def _decided(hook: Hook, output: bytes) -> HookAnswer:
    """The answer in a program's output or an HTTP response: a JSON object is a decision, any other text is
    plain text."""
    try:
        text = _as_utf8(output).strip()
    except UnicodeDecodeError:
        return _unreadable(hook, output, "its JSON cannot be read: invalid UTF-8")
    both = text if text == output else text + output  # a wrongly detected encoding must not hide a deny
    if text.startswith(b"{"):
        try:
            repaired = replace_lone_surrogates(text) or text
            document = decode_as(dict[str, Any], repaired)
        except Unreadable as error:
            return _unreadable(hook, both, f"its JSON cannot be read: {error.detail}")
        if _has_a_key_twice(repaired):
            return _unreadable(hook, both, "its JSON has a key twice")
        return _read(hook, document) or HookAnswer(hook=hook.name)
    if any(key in both for key in _ANSWER_KEYS) or _RESTRICTS.search(both) or _ENDS.search(both):
        return _unreadable(hook, both, "it wrote something before its JSON, which must be its only output")
    if hook.event not in _TEXT_IS_CONTEXT or not text:
        return HookAnswer(hook=hook.name)
    return HookAnswer(hook=hook.name, context=verdicts.cleaned_context(text.decode()))


_TEXT_IS_CONTEXT: Final = ("SessionStart", "UserPromptSubmit")
"""Events whose hooks may print text for the model, without JSON."""


def _unreadable(hook: Hook, output: bytes, problem: str) -> HookAnswer:
    """The answer for output that cannot be decoded; a refusal or an ask found in it is applied."""
    answer = _failure(hook, problem)
    words = {word.lower() for word in _RESTRICTS.findall(output)}
    ends = _ENDS.search(output) is not None
    if answer.behaviour is not None or not (words or ends):
        return answer
    behaviour = "ask" if words == {b"ask"} and not ends else "deny"
    return structs.replace(answer, behaviour=behaviour, reason="its answer cannot be read in full", ends=ends)


_RESTRICTS: Final = re.compile(
    rb"""["'](?:permissionDecision|decision|behaviou?r)["']\s*:\s*["'](deny|block|ask)["']""", re.IGNORECASE
)
_ENDS: Final = re.compile(rb"""["']continue["']\s*:\s*["']?(?:false|no|0)\b""", re.IGNORECASE)
_ANSWER_KEYS: Final = (b'"hookSpecificOutput"', b'"decision"', b'"permissionDecision"', b'"continue"')


def _has_a_key_twice(text: bytes) -> bool:
    """Whether an object in the JSON text has a key twice: the value that is not used may be a refusal."""
    repeated = False

    def read_object(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeated
        repeated = repeated or len({key for key, _ in pairs}) != len(pairs)

    with contextlib.suppress(ValueError, RecursionError):  # a number with too many digits
        json.loads(text, object_pairs_hook=read_object)
    return repeated


def _as_utf8(output: bytes) -> bytes:
    """The output as UTF-8: some shells print UTF-16, with or without a byte order mark."""
    return output.decode(json.detect_encoding(output)).encode()


def _read(hook: Hook, output: Mapping[str, Any] | None) -> HookAnswer | None:
    if not output:
        return None
    answer = verdicts.read(
        hook.event, hook.name, output, blocks=hook.blocks_on_error, is_managed=hook.is_managed
    )
    return verdicts.restricted(answer) if hook.only_restricts else answer


def _returned(hook: Hook, output: Mapping[str, Any] | None) -> HookAnswer | None:
    """The answer of a function, with the values that a command would have printed: a decision may be a member
    of an `Enum`."""
    try:
        return _read(hook, copied(output) if output else None)
    except (RecursionError, msgspec.DecodeError) as error:
        return _failure(hook, f"its answer cannot be written as JSON: {one_line(str(error), 200)}")


def _as_bytes(result: object) -> bytes:
    """What a function returned in place of a dict, so that a deny in it can be found."""
    if isinstance(result, str):
        return result.encode(errors="replace")
    try:
        return result if isinstance(result, bytes) else msgspec.json.encode(result)
    except _NOT_JSON:
        return b""


def _failure(hook: Hook, problem: str) -> HookAnswer:
    return verdicts.failed(hook.name, problem, blocks=hook.blocks_on_error, is_managed=hook.is_managed)


def _raised(error: BaseException) -> str:
    return f"it raised {type(error).__name__}: {one_line(str(error), 200)}"
