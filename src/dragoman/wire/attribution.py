"""Finds the requests that an undecodable message was meant to answer.

Only ids at the top level of a text with the structure of a reply are used: a log record that mentions or
quotes a request is not a reply to it. Linear in the size of the message; without I/O.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from dragoman.wire.codec import DECODE_ERRORS, batch_members
from dragoman.wire.messages import ABSENT

SCAN_BYTES: Final = 4096
"""How much of a message that is not JSON, from each end, is searched for its id."""

_BOM: Final = b"\xef\xbb\xbf"
# The closing quote is optional, so that an unterminated string is one token and is not tried again from each
# quote inside it.
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\]]', re.DOTALL)
_INTEGER: Final = re.compile(rb"\d{1,18}")
_ID_VALUE: Final = re.compile(rb"\s*:\s*(\d{1,18})(?![\d.eE])")
_ID_AT_END: Final = re.compile(
    rb'"id"\s*:\s*(\d{1,18})\s*'
    rb'(?:,\s*"[^"\\]{1,64}"\s*:\s*"[^"\\]{1,64}"\s*){0,4}\}\s*$'
)
_REPLY_KEY: Final = re.compile(rb"""["'](?:jsonrpc|result|error)["']\s*:""")


class _Reply(Struct):
    """The members that make an object a reply, whatever their values and whatever else it has."""

    id: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


_decode_reply = msgspec.json.Decoder(_Reply).decode


def answered_ids(data: bytes) -> list[int]:
    """The integer ids of a complete message that cannot be decoded, but was intended as a reply or a batch of
    replies."""
    data = data.removeprefix(_BOM)
    try:
        return _ids_of(_decode_reply(data))
    except msgspec.ValidationError:  # JSON, but not an object
        return [found for member in batch_members(data) for found in _ids_of_member(member)]
    except DECODE_ERRORS:
        return ids_in_ends(data, data)


def _ids_of_member(member: bytes) -> list[int]:
    try:
        return _ids_of(_decode_reply(member))
    except DECODE_ERRORS:
        return []


def _ids_of(reply: _Reply) -> list[int]:
    if reply.id is ABSENT or (reply.result is ABSENT and reply.error is ABSENT):
        return []
    return [int(reply.id)] if _INTEGER.fullmatch(reply.id) else []


def ids_in_ends(head: bytes, tail: bytes) -> list[int]:
    """Like `answered_ids`, for a message that is not JSON, or of which only the ends are known."""
    head, tail = head[:SCAN_BYTES].lstrip(_BOM + b" \t\r\n"), tail[-SCAN_BYTES:]
    if head[:1] != b"{" or not (_REPLY_KEY.search(head) or _REPLY_KEY.search(tail)):
        return []
    found = _top_level_ids(head)
    at_end = _ID_AT_END.search(tail)
    if found is None or (at_end is None and not found):
        return []
    named = found if at_end is None else [*found, at_end[1]]
    return list(dict.fromkeys(int(number) for number in named))


def _top_level_ids(head: bytes) -> list[bytes] | None:
    """The values of `id` at the top level; None if there is a `method`, because then it is not a reply."""
    depth = 0
    found: list[bytes] = []
    for token in _TOKEN.finditer(head):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case b'"id"' if depth == 1 and (value := _ID_VALUE.match(head, token.end())):
                found.append(value[1])
            case b'"method"' if depth == 1:
                return None
            case _:
                pass
    return found
