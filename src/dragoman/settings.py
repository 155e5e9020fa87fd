"""The table of all settings.

Defines names, defaults, units, how a value is parsed, and which of several values is used. `config` reads the
files; the reference page is generated from `TABLE`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from dragoman.errors import ConfigError


class Setting(NamedTuple):
    name: str
    """The environment variable and the key in settings files."""
    default: int
    minimum: int
    unit: str
    help: str


TABLE: tuple[Setting, ...] = (
    Setting("MCP_TIMEOUT", 30_000, 1, "ms", "Time a server has to start and answer the handshake."),
    Setting("MCP_TOOL_TIMEOUT", 100_000_000, 1, "ms", "Time a tool call may take."),
    Setting("MCP_REQUEST_TIMEOUT_MS", 60_000, 1, "ms", "Time any other single request may take."),
    Setting("MAX_MCP_OUTPUT_TOKENS", 25_000, 1, "tokens", "Largest result that a model is given whole."),
    Setting(
        "MCP_SERVER_CONNECTION_BATCH_SIZE",
        3,
        1,
        "servers",
        "Local servers that begin to connect at once; one that takes longer than 1 s is no longer counted.",
    ),
    Setting(
        "MCP_REMOTE_SERVER_CONNECTION_BATCH_SIZE",
        20,
        1,
        "servers",
        "Remote servers that begin to connect at once; one that takes longer than 1 s is no longer counted.",
    ),
    Setting(
        "DRAGOMAN_MESSAGE_LIMIT_BYTES",
        64 * 1024 * 1024,
        1024,
        "bytes",
        "Largest message taken from a server.",
    ),
    Setting(
        "DRAGOMAN_UNREQUESTED_MESSAGES_PER_SECOND",
        10_000,
        100,
        "messages",
        "Messages that answer no request a server may send each second (ten seconds' worth at once); "
        "one that sends more is disconnected.",
    ),
    Setting("DRAGOMAN_PROBE_TIMEOUT_MS", 3_000, 1, "ms", "Time a server has to answer the revision probe."),
    Setting("DRAGOMAN_WRITE_STALL_MS", 30_000, 1, "ms", "Time a server may leave its stdin unread."),
    Setting(
        "DRAGOMAN_STOP_WAIT_MS",
        2_000,
        0,
        "ms",
        "Time a local server that answered calls has to end by itself after its input is closed.",
    ),
    Setting("DRAGOMAN_RECONNECT_ATTEMPTS", 5, 0, "attempts", "Attempts to reconnect to a server."),
    Setting(
        "DRAGOMAN_RECONNECT_WAIT_MS", 1_000, 1, "ms", "Wait before the first attempt; doubles each time."
    ),
    Setting("DRAGOMAN_RECONNECT_LONGEST_WAIT_MS", 30_000, 1, "ms", "Longest wait between two attempts."),
    Setting(
        "DRAGOMAN_SAMPLING_MAX_TOKENS", 4096, 1, "tokens", "Most tokens of one answer to a sampling request."
    ),
    Setting(
        "DRAGOMAN_SAMPLING_PER_MINUTE", 10, 0, "requests", "Most sampling requests of one server in a minute."
    ),
    Setting(
        "DRAGOMAN_SECRET_FORM_FIELDS",
        0,
        0,
        "0 or 1",
        "Whether forms of servers may have fields for passwords and other secrets; they are marked.",
    ),
    Setting(
        "DRAGOMAN_REPEAT_SAFE_CALLS",
        0,
        0,
        "0 or 1",
        "Whether a lost call is repeated if a trusted server calls the tool read-only or idempotent.",
    ),
    Setting(
        "DRAGOMAN_ENABLE_XAA", 0, 0, "0 or 1", "Whether company sign-on (`oauth.xaa`, `xaaIdp`) is used."
    ),
    Setting("DRAGOMAN_CONTEXT_TOKENS", 200_000, 1000, "tokens", "Context size of a conversation's model."),
    Setting(
        "DRAGOMAN_TOOL_SHARE_PERCENT",
        10,
        0,
        "percent",
        "Share of the context that tools may use before they are deferred; 0 defers always, 100 never.",
    ),
    Setting(
        "DRAGOMAN_IDLE_STOP_MS",
        300_000,
        1,
        "ms",
        "Time after which a lazy server that is not used is stopped.",
    ),
)

_ROWS = {row.name: row for row in TABLE}


NAMES: frozenset[str] = frozenset(_ROWS)


class Layer(NamedTuple):
    """The values of settings from one source."""

    source: str
    values: Mapping[str, object]


class SettingValue(NamedTuple):
    """One value and its source."""

    value: int
    source: str


class Settings:
    """The values in effect. Managed files take precedence over code, code over the environment, and the
    environment over other files."""

    __slots__ = ("_all_values", "_values", "problems")

    def __init__(
        self,
        overrides: Mapping[str, int] | None = None,
        environ: Mapping[str, str] | None = None,
        *,
        managed: Sequence[Layer] = (),
        files: Sequence[Layer] = (),
    ) -> None:
        """`files` are given from the highest scope to the lowest.

        An invalid value raises if it comes from code or the environment; in a file it is ignored and listed
        in `problems`.
        """
        self.problems: list[str] = []
        given = {**(overrides or {})}
        for name in given.keys() - _ROWS.keys():
            known = ", ".join(row.name for row in TABLE)
            raise ConfigError(f"there is no setting named {name!r}", hint=f"Known settings: {known}")
        environ = os.environ if environ is None else environ
        self._all_values = {
            row.name: (
                *self._from_files(row, managed),
                *([SettingValue(_checked(row, given[row.name]), "code")] if row.name in given else []),
                *_from_environment(row, environ.get(row.name)),
                *self._from_files(row, files),
                SettingValue(row.default, "default"),
            )
            for row in TABLE
        }
        self._values = {name: values[0].value for name, values in self._all_values.items()}

    def __getitem__(self, name: str) -> int:
        return self._values[name]

    def values_of(self, name: str) -> tuple[SettingValue, ...]:
        """Every value given for a setting; the first is in effect and overrides the others."""
        return self._all_values[name]

    def adopt(self, other: Settings) -> None:
        """Replaces the values by those of another object; all users of this object see them."""
        self._all_values, self._values, self.problems = other._all_values, other._values, other.problems

    def _from_files(self, row: Setting, layers: Sequence[Layer]) -> Iterator[SettingValue]:
        for layer in layers:
            if row.name not in layer.values:
                continue
            value = layer.values[row.name]
            try:
                yield SettingValue(_of_file(row, value), layer.source)
            except ConfigError as error:
                self.problems.append(f"{layer.source}: {error}; it is ignored")

    def seconds(self, name: str) -> float:
        """A setting declared in milliseconds, as seconds."""
        return self._values[name] / 1000


def _from_environment(row: Setting, text: str | None) -> Iterator[SettingValue]:
    if text is not None and text.strip():
        yield SettingValue(_number(row, text), "environment")


def fault_of_value(name: str, value: object) -> str | None:
    """Why a file cannot give a setting this value; None if it can."""
    try:
        _of_file(_ROWS[name], value)
    except ConfigError as error:
        return str(error)
    return None


def _of_file(row: Setting, value: object) -> int:
    return _number(row, value) if isinstance(value, str) else _checked(row, value)


def _number(row: Setting, text: str) -> int:
    try:
        return _checked(row, int(text.strip()))
    except ValueError:
        raise ConfigError(
            f"{row.name} must be a whole number of {row.unit}, not {text!r}", hint=row.help
        ) from None


def _checked(row: Setting, value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < row.minimum:
        raise ConfigError(
            f"{row.name} must be at least {row.minimum} {row.unit}, not {value!r}", hint=row.help
        )
    return value
