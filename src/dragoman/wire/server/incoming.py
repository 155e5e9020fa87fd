"""Reads the messages of a client, and decides in which era and by which handler a request is answered.
Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeVar

from msgspec import UNSET, Raw, Struct

from dragoman.protocol import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    META_PROTOCOL_VERSION,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
)
from dragoman.surrogates import replace_lone_surrogates
from dragoman.wire.codec import Unreadable, decode_as, decode_envelope, encode_error
from dragoman.wire.messages import ABSENT, Envelope, MessageId
from dragoman.wire.server import legacy, modern
from dragoman.wire.server.service import LARGEST_ID, Client, Handler, RequestError, RequestId, Service

T = TypeVar("T")

METHOD_SAMPLE: Final = 100
"""How much of an unknown method's name an error repeats."""


class _Params(Struct, rename={"meta": "_meta"}):
    meta: modern.RequestMeta | None = None


class _WithId(Struct):
    id: MessageId = None


def read(message: bytes) -> Envelope | bytes:
    """The request, notification or reply; or, as bytes, the error reply if it is none of them."""
    try:
        envelope = decode_envelope(message)
    except Unreadable as problem:
        repaired = replace_lone_surrogates(message)
        if repaired is not None:
            return read(repaired)
        code = INVALID_REQUEST if problem.is_json else PARSE_ERROR
        return encode_error(_id_in(message), code, f"not a JSON-RPC message: {problem.detail}")
    return checked(envelope, message)


def checked(envelope: Envelope, message: bytes) -> Envelope | bytes:
    """Like `read`, for a message whose envelope is already decoded."""
    if envelope.method is UNSET and envelope.result is ABSENT and envelope.error is ABSENT:
        return encode_error(_id_in(message), INVALID_REQUEST, "neither a request nor a reply")
    if envelope.method is not UNSET and envelope.id is not UNSET and not is_request_id(envelope.id):
        return encode_error(None, INVALID_REQUEST, "a request id is a string or an integer")
    return envelope


def _id_in(message: bytes) -> MessageId:
    """The id of a message that is not a valid request, if it has an id that can be used in the answer."""
    try:
        found = decode_as(_WithId, message).id
    except Unreadable:
        return None
    return found if is_request_id(found) else None


def is_request_id(value: MessageId) -> bool:
    # `true` and `1.0` equal an integer in Python.
    return type(value) is str or (type(value) is int and abs(value) <= LARGEST_ID)


def decode_params(shape: type[T], params: Raw) -> T:
    try:
        return decode_as(shape, b"{}" if params is ABSENT else params)
    except Unreadable as problem:
        raise RequestError(INVALID_PARAMS, problem.detail) from None


def read_meta(params: Raw) -> modern.RequestMeta:
    return decode_params(_Params, params).meta or modern.RequestMeta()


def client_of(service: Service, session: Client | None, method: str, meta: modern.RequestMeta) -> Client:
    """The client of a request, in the era in which it is answered. `session`: the client that sent
    `initialize`."""
    if meta.protocol_version is not None and service.modern_revisions:
        return modern.client_of(service, meta.protocol_version, meta)
    if session is not None:
        return session
    if method == "server/discover" and not service.modern_revisions:
        raise unknown_method(method)
    if method == "ping" and service.legacy_revisions:
        return Client(era="legacy", revision=service.legacy_revisions[0])
    if service.modern_revisions:
        raise RequestError(INVALID_PARAMS, f"no initialize, and no {META_PROTOCOL_VERSION} in _meta")
    raise RequestError(INVALID_REQUEST, "the first request must be initialize")


def handler_of(service: Service, client: Client, method: str, own: Mapping[str, Handler]) -> Handler:
    """The handler of a request. `own`: the handlers of the connection itself, which take precedence over
    those of the service."""
    of_other_era = modern.METHODS if client.era == "legacy" else legacy.METHODS
    found = own.get(method) or service.handlers.get(method)
    if found is None or method in of_other_era:
        raise unknown_method(method)
    return found


def unknown_method(method: str) -> RequestError:
    return RequestError(METHOD_NOT_FOUND, f"unknown method {method[:METHOD_SAMPLE]}")


def error_reply(request_id: RequestId | None, error: RequestError, client: Client | None = None) -> bytes:
    code = error.code_in("modern" if client is None else client.era)
    return encode_error(request_id, code, error.message, error.data)
