"""Which requests an undecodable message was meant to answer."""

import time

import pytest

from dragoman.wire.attribution import SCAN_BYTES, answered_ids, ids_in_ends

WHOLE = {
    "no version": (b'{"id":1,"result":{}}', [1]),
    "another version": (b'{"jsonrpc":"1.0","id":1,"error":{}}', [1]),
    "a byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"result":1}', [1]),
    "a batch": (b'[{"id":1,"result":1},{"id":2,"error":1},7,{"id":3}]', [1, 2]),
    "cut off after the id": (b'{"jsonrpc":"2.0","id":1', [1]),
    "cut off in the result": (b'{"jsonrpc":"2.0","id":1,"result":{"a', [1]),
    "id last": (b'{"jsonrpc":"2.0","result":tru,"id":1}', [1]),
    "id before the version": (b'{"result":tru,"id":1, "jsonrpc":"2.0"}', [1]),
    "single quotes": (b"""{'jsonrpc':'2.0',"id":1,'result':1}""", [1]),
    "two in one line": (b'{"id":1,"result":1}{"id":2,"result":1}', [1, 2]),
    "named twice": (b'{"id":1,"result":tru,"id":1}', [1]),
    "a text as the id": (b'{"jsonrpc":"1.0","id":"1","result":1}', []),
    "a fraction as the id": (b'{"jsonrpc":"1.0","id":1.0,"result":1}', []),
    "a list as the id": (b'{"jsonrpc":"2.0","id":[1],"result":1}', []),
    "no result": (b'{"level":"debug","id":1}', []),
    "no result, not JSON": (b'{"level":"debug","id":1,bad}', []),
    "a reply inside": (b'{"sent":{"jsonrpc":"2.0","id":1,"result":1}}', []),
    "a reply inside, not JSON": (b'{"sent":{"jsonrpc":"2.0","id":1,"result":1},bad}', []),
    "a reply inside at the end": (b'{bad,"sent":{"jsonrpc":"2.0","result":1,"id":1}}', []),
    "a reply as text": (rb'{"sent":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":1}",bad}', []),
    "a log line": (b'[12:00] {"jsonrpc":"2.0","id":1,"result":1}', []),
    "words": (b'sent {"jsonrpc":"2.0","id":1,"result":1}', []),
    "a request": (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{bad}}', []),
    "a number": (b"1", []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("data", "found"), WHOLE.values(), ids=WHOLE.keys())
def test_which_request_an_undecodable_message_belongs_to(data: bytes, found: list[int]):
    assert answered_ids(data) == found


ENDS = {
    "id first": (b'{"jsonrpc":"2.0","id":1,"result":', b"", [1]),
    "id last": (b'{"result":', b'..},"id":2}', [2]),
    "with blanks": (b' { "id" :\t3 , "error" :', b"", [3]),
    "too long to be ours": (b'{"result":1,"id":' + b"1" * 19 + b"}", b"", []),
    "too far in": (b'{"result":"' + b"x" * SCAN_BYTES + b'","id":1', b"", []),
    "inside the result": (b'{"jsonrpc":"2.0","result":{"id":1', b"", []),
}


@pytest.mark.parametrize(("head", "tail", "found"), ENDS.values(), ids=ENDS.keys())
def test_which_request_a_message_with_known_ends_belongs_to(head, tail, found):
    assert ids_in_ends(head, tail) == found


@pytest.mark.parametrize(
    "piece", [b"{", b'"', rb"\"", b'"id":1,', b'{"id":', b'"id":1,"a":"b",'], ids=lambda piece: piece
)
def test_hostile_text_is_searched_in_linear_time(piece: bytes):
    def seconds(size: int) -> float:
        data = b'{"result":' + (piece * size)[:size]
        began = time.process_time()
        for _ in range(20):
            ids_in_ends(data, data)
        return time.process_time() - began

    assert seconds(SCAN_BYTES) < 50 * max(seconds(SCAN_BYTES // 8), 0.001)
