"""Which requests an undecodable message was meant to answer."""

import time

import pytest

from dragoman.wire.attribution import SCAN_BYTES, answered_ids, ids_in_ends

WHOLE = {
    "no version": (b'{"id":"d1","result":{}}', ["d1"]),
    "another version": (b'{"jsonrpc":"1.0","id":"d1","error":{}}', ["d1"]),
    "a byte order mark": (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":"d1","result":1}', ["d1"]),
    "a batch": (b'[{"id":"d1","result":1},{"id":"d2","error":1},7,{"id":"d3"}]', ["d1", "d2"]),
    "cut off after the id": (b'{"jsonrpc":"2.0","id":"d1"', ["d1"]),
    "cut off in the result": (b'{"jsonrpc":"2.0","id":"d1","result":{"a', ["d1"]),
    "id last": (b'{"jsonrpc":"2.0","result":tru,"id":"d1"}', ["d1"]),
    "id before the version": (b'{"result":tru,"id":"d1", "jsonrpc":"2.0"}', ["d1"]),
    "single quotes": (b"""{'jsonrpc':'2.0',"id":"d1",'result':1}""", ["d1"]),
    "two in one line": (b'{"id":"d1","result":1}{"id":"d2","result":1}', ["d1", "d2"]),
    "named twice": (b'{"id":"d1","result":tru,"id":"d1"}', ["d1"]),
    "a number": (b'{"jsonrpc":"1.0","id":1,"result":1}', []),
    "a list as the id": (b'{"jsonrpc":"2.0","id":["d1"],"result":1}', []),
    "no result": (b'{"level":"debug","id":"d1"}', []),
    "no result, not JSON": (b'{"level":"debug","id":"d1",bad}', []),
    "a reply inside": (b'{"sent":{"jsonrpc":"2.0","id":"d1","result":1}}', []),
    "a reply inside, not JSON": (b'{"sent":{"jsonrpc":"2.0","id":"d1","result":1},bad}', []),
    "a reply inside at the end": (b'{bad,"sent":{"jsonrpc":"2.0","result":1,"id":"d1"}}', []),
    "a reply as text": (rb'{"sent":"{\"jsonrpc\":\"2.0\",\"id\":\"d1\",\"result\":1}",bad}', []),
    "a log line": (b'[12:00] {"jsonrpc":"2.0","id":"d1","result":1}', []),
    "words": (b'sent {"jsonrpc":"2.0","id":"d1","result":1}', []),
    "a request": (b'{"jsonrpc":"2.0","id":"d1","method":"ping","params":{bad}}', []),
    "a text": (b'"d1"', []),
    "nothing": (b"", []),
}


@pytest.mark.parametrize(("data", "found"), WHOLE.values(), ids=WHOLE.keys())
def test_whom_an_undecodable_message_was_meant_for(data: bytes, found: list[str]):
    assert answered_ids(data) == found


ENDS = {
    "id first": (b'{"jsonrpc":"2.0","id":"d1","result":', b"", ["d1"]),
    "id last": (b'{"result":', b'..},"id":"d2"}', ["d2"]),
    "with blanks": (b' { "id" :\t"d3" , "error" :', b"", ["d3"]),
    "too long to be ours": (b'{"result":1,"id":"' + b"x" * 65 + b'"}', b"", []),
    "too far in": (b'{"result":"' + b"x" * SCAN_BYTES + b'","id":"d1"', b"", []),
    "inside the result": (b'{"jsonrpc":"2.0","result":{"id":"d1"', b"", []),
}


@pytest.mark.parametrize(("head", "tail", "found"), ENDS.values(), ids=ENDS.keys())
def test_whom_a_message_was_meant_for_of_which_only_the_ends_are_known(head, tail, found):
    assert ids_in_ends(head, tail) == found


@pytest.mark.parametrize(
    "piece", [b"{", b'"', rb"\"", b'"id":"x",', b'{"id":', b'"id":"x","a":"b",'], ids=lambda piece: piece
)
def test_hostile_text_is_searched_in_linear_time(piece: bytes):
    def seconds(size: int) -> float:
        data = b'{"result":' + (piece * size)[:size]
        began = time.process_time()
        for _ in range(20):
            ids_in_ends(data, data)
        return time.process_time() - began

    assert seconds(SCAN_BYTES) < 50 * max(seconds(SCAN_BYTES // 8), 0.001)
