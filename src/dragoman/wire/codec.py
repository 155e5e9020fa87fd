"""Encodes what is sent, and decodes the envelope of what is received once.

Any input results in a value or in `Unreadable`, in linear time. The transports handle framing (lines, events,
bodies); `attribution.py` finds the request that undecodable bytes belong to.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Raw

from dragoman.wire.messages import Envelope

_encode = msgspec.json.Encoder().encode
decode_message = msgspec.json.Decoder(Envelope).decode
"""Like `decode_envelope`; raises `DECODE_ERRORS`."""
_decode_batch = msgspec.json.Decoder(list[Raw]).decode

T = TypeVar("T")

BATCH_LIMIT_BYTES: Final = 1024 * 1024
BATCH_LIMIT: Final = 1000
"""The maximum number of messages in one batch; a larger batch is not split, because that would block the
event loop."""

SLOW_NUMBERS: Final = 1000
"""Numbers such as `1e308` in one value from which another decoder is used: msgspec takes 15 µs for each."""
_LARGE_EXPONENTS: Final = (
    re.compile(rb"e(?<=[0-9]e)[+-]?[0-9]{3}"),
    re.compile(rb"E(?<=[0-9]E)[+-]?[0-9]{3}"),
)
"""Two patterns, because a search for one letter is several times as fast."""
SHORTEST_SLOW_BYTES: Final = SLOW_NUMBERS * len(b"1e308,")
"""Shorter texts are never slow."""

_LINE_ENDS_AS_BLANKS: Final = bytes.maketrans(b"\r\n", b"  ")

# msgspec raises RecursionError on deep nesting and UnicodeDecodeError on invalid UTF-8 inside a string.
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Unreadable(Exception):
    """Bytes that are not a message. `detail` says why; `is_json`: they are JSON, as far as is known."""

    def __init__(self, detail: str, *, is_json: bool = False) -> None:
        super().__init__(detail)
        self.detail = detail
        self.is_json = is_json


NOTIFICATION: Final = b'{"jsonrpc":"2.0","method":'
"""The beginning of every encoded notification, and of no other message."""
_WITH_METHOD: Final = re.compile(rb'\{"jsonrpc":"2\.0",(?:"id":-?[0-9]+,)?"method":')
"""The beginning of every encoded request and notification."""


def encode_request(request_id: int, method: str, params: Mapping[str, Any] | None) -> bytes:
    if params is None:
        return _encode({"jsonrpc": "2.0", "id": request_id, "method": method})
    return _encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def encode_notification(method: str, params: Mapping[str, Any] | None = None) -> bytes:
    if params is None:
        return _encode({"jsonrpc": "2.0", "method": method})
    return _encode({"jsonrpc": "2.0", "method": method, "params": params})


def is_reply(encoded: bytes) -> bool:
    """Whether a message that was encoded here is a result or an error."""
    return _WITH_METHOD.match(encoded) is None


def encode_result(request_id: object, result: object) -> bytes:
    """Encodes a result on one line, as stdio and event streams require: a result that is passed on may
    contain line ends."""
    message = _encode({"jsonrpc": "2.0", "id": request_id, "result": result})
    if b"\n" in message or b"\r" in message:
        return message.translate(_LINE_ENDS_AS_BLANKS)
    return message


def encode_error(request_id: object, code: int, message: str, data: object = None) -> bytes:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return _encode({"jsonrpc": "2.0", "id": request_id, "error": error})


def can_be_encoded(value: object) -> bool:
    """Whether a value of a program can be sent: a lone surrogate cannot, nor can an arbitrary object."""
    try:
        _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True


def decode_envelope(data: bytes) -> Envelope:
    try:
        return decode_message(data)
    except DECODE_ERRORS as error:
        raise unreadable(error) from None


def unreadable(error: Exception) -> Unreadable:
    return Unreadable(describe(error), is_json=isinstance(error, msgspec.ValidationError))


def batch_members(data: bytes) -> list[bytes]:
    """The messages of a JSON-RPC batch, still encoded; empty if it is not a batch, or has too many
    messages."""
    if data.lstrip()[:1] != b"[" or len(data) > BATCH_LIMIT_BYTES:
        return []
    try:
        members = _decode_batch(data)
    except DECODE_ERRORS:
        return []
    return [bytes(member) for member in members] if len(members) <= BATCH_LIMIT else []


def decode_as(shape: type[T], raw: Raw | bytes) -> T:
    """The raw part of a message as a typed value, or `Unreadable`."""
    try:
        if is_slow(raw):
            return _decode_slow(shape, raw)
        return _decoder(shape).decode(raw)
    except DECODE_ERRORS as error:
        raise Unreadable(describe(error)) from None


def split_as(shape: type[T], raw: Raw | bytes) -> T:
    """Like `decode_as`, for a type without numbers whose parts stay `Raw`: the check of `is_slow` would take
    longer than decoding."""
    try:
        return _decoder(shape).decode(raw)
    except DECODE_ERRORS as error:
        raise Unreadable(describe(error)) from None


def is_slow(raw: Raw | bytes) -> bool:
    """Whether msgspec would take very long for its numbers, if it decoded them."""
    if len(raw) < SHORTEST_SLOW_BYTES:
        return False
    view = memoryview(raw)
    return any(
        next(islice(exponents.finditer(view), SLOW_NUMBERS, None), None) for exponents in _LARGE_EXPONENTS
    )


def _decode_slow(shape: type[T], raw: Raw | bytes) -> T:
    try:
        text = str(memoryview(raw), "utf-8")
        value: object = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise Unreadable(str(error)) from None
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return _decoder(shape).decode(
            raw
        )  # its parts stay undecoded, or it does not fit the type: both are quick


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("Number out of range")
    return number


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(shape: type[T]) -> msgspec.json.Decoder[T]:
    decoder = _decoders.get(shape)
    if decoder is None:
        decoder = _decoders[shape] = msgspec.json.Decoder(shape)
    return cast("msgspec.json.Decoder[T]", decoder)


def describe(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return "invalid UTF-8"
    return str(error)
