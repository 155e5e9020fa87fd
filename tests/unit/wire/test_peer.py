"""One side of the conversation: every reply finds its request, and no bytes do harm."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import ConnectionLost, DragomanError, MalformedReply, MessageTooLarge, RemoteError
from dragoman.wire.peer import PROGRESS_MESSAGE_LIMIT, REPORT_EVERY, UNPARSED_LINES, Peer, Progress
from tests.unit.fakes import RecordingListener, RecordingWaiter


class Conversation:
    """A peer with some requests open: 1, 2, …"""

    def __init__(self, open_requests: int = 1) -> None:
        self.listener = RecordingListener()
        self.peer = Peer("box", self.listener, limit_bytes=1000)
        self.progress: list[Progress] = []
        self.waiters: dict[int, RecordingWaiter] = {}
        for _ in range(open_requests):
            waiter = RecordingWaiter()
            self.waiters[self.peer.open_request(waiter)] = waiter

    def hear(self, *messages: bytes | dict[str, object]) -> None:
        for message in messages:
            self.peer.receive(message if isinstance(message, bytes) else json.dumps(message).encode())

    def outcome(self, request_id: int = 1) -> bytes | DragomanError:
        return self.waiters[request_id].outcome

    def waits(self, request_id: int = 1) -> bool:
        return not self.waiters[request_id].done()


def reply(request_id: object, **parts: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": request_id, **(parts or {"result": {}})}


# --- which reply belongs to which request ---


def test_ids_count_up_and_are_never_used_again():
    talk = Conversation(2)
    talk.peer.forget(2)

    assert talk.peer.open_request(RecordingWaiter()) == 3


def test_a_reply_resolves_its_request_with_the_raw_result():
    talk = Conversation(2)
    talk.hear(b'{"jsonrpc":"2.0","id":2,"result":{"a":  1.0}}')

    assert talk.outcome(2) == b'{"a":  1.0}'
    assert talk.waits(1)
    assert talk.peer.in_flight == 1


@pytest.mark.parametrize(
    "foreign", [b'"1"', b"true", b"1.0", b"1e0", b"null", b'"01"', b'" 1"', b"-1", b'"\xef\xbc\x91"', b'""']
)
def test_an_id_of_another_type_or_spelling_matches_no_request(foreign: bytes):
    talk = Conversation()
    talk.hear(b'{"jsonrpc":"2.0","id":' + foreign + b',"result":{}}')

    assert talk.waits(1)
    assert talk.peer.ignored == {"reply to no pending request": 1}


def test_a_reply_without_an_id_matches_no_request():
    talk = Conversation()
    talk.hear(b'{"jsonrpc":"2.0","result":{}}')

    assert talk.waits()


def test_the_second_of_two_replies_is_ignored():
    talk = Conversation()
    talk.hear(reply(1, result=1), reply(1, result=2), reply(1, error={"code": 1, "message": ""}))

    assert talk.outcome() == b"1"
    assert talk.peer.ignored == {"reply to no pending request": 2}


def test_a_late_reply_is_ignored():
    talk = Conversation()
    assert talk.peer.forget(1)
    talk.hear(reply(1))

    assert talk.waits()
    assert talk.peer.in_flight == 0
    assert not talk.peer.forget(1)


def test_a_reply_to_a_waiter_that_is_already_done_changes_nothing():
    talk = Conversation()
    talk.waiters[1].resolutions.append(b"cancelled")
    talk.hear(reply(1))

    assert talk.outcome() == b"cancelled"


@pytest.mark.parametrize(
    ("parts", "detail"),
    [
        ({"result": {}, "error": {"code": 1, "message": "x"}}, "both a result and an error"),
        ({"result": None, "error": None}, "both a result and an error"),
        ({"neither": 1}, "neither a result nor an error"),
        ({"error": "broken"}, "the error object cannot be read"),
        ({"error": {"message": "no code"}}, "the error object cannot be read"),
        ({"error": {"code": "-32000", "message": "x"}}, "the error object cannot be read"),
        ({"error": {"code": 1, "message": None}}, "the error object cannot be read"),
        ({"error": None}, "the error object cannot be read"),
    ],
    ids=str,
)
def test_a_reply_of_the_wrong_shape_fails_its_request(parts: dict[str, object], detail: str):
    talk = Conversation(2)
    talk.hear(reply(1, **parts))

    error = talk.outcome(1)
    assert isinstance(error, MalformedReply)
    assert detail in str(error)
    assert talk.waits(2)


def test_a_null_result_is_a_result():
    talk = Conversation()
    talk.hear(reply(1, result=None))

    assert talk.outcome() == b"null"


def test_an_error_reply_carries_code_message_and_data():
    talk = Conversation()
    talk.hear(reply(1, error={"code": -32042, "message": "sign in", "data": {"url": "x"}}))

    error = talk.outcome()
    assert isinstance(error, RemoteError)
    assert (error.remote_code, error.remote_message, error.remote_data) == (-32042, "sign in", {"url": "x"})


def test_an_error_with_a_null_id_is_recorded_and_fails_no_request():
    talk = Conversation()
    talk.hear(reply(None, error={"code": -32700, "message": "Parse error"}))

    assert talk.waits()
    ((kind, sample),) = talk.listener.faults
    assert kind == "error without an id"
    assert "-32700" in sample


# --- batches ---

BATCH = [reply(1, result=1), {"jsonrpc": "2.0", "method": "notifications/x"}, reply(2, result=2)]


def test_a_batch_is_split_where_the_revision_has_batches():
    talk = Conversation(2)
    talk.peer.accepts_batches = True
    talk.hear(b" " + json.dumps(BATCH).encode())

    assert (talk.outcome(1), talk.outcome(2)) == (b"1", b"2")
    assert talk.listener.notifications == [("notifications/x", b"")]


def test_a_batch_fails_its_requests_where_the_revision_has_none():
    talk = Conversation(3)
    talk.hear(json.dumps(BATCH).encode())

    assert isinstance(talk.outcome(1), MalformedReply)
    assert isinstance(talk.outcome(2), MalformedReply)
    assert talk.waits(3)


def test_an_empty_batch_is_ignored():
    talk = Conversation()
    talk.peer.accepts_batches = True
    talk.hear(b"[]")

    assert talk.waits()


def test_an_invalid_member_of_a_batch_does_not_affect_the_others():
    talk = Conversation(2)
    talk.peer.accepts_batches = True
    talk.hear(json.dumps([reply(1, result=1), {"jsonrpc": "1.0", "id": 2, "result": 2}]).encode())

    assert talk.outcome(1) == b"1"
    assert isinstance(talk.outcome(2), MalformedReply)


# --- what cannot be read ---

FILLER = b'"text":"' + b"x" * 20_000 + b'"'


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{' + FILLER, id="cut off, id first"),
        pytest.param(b'{"result":{' + FILLER + b',,},"jsonrpc":"2.0","id":2}', id="broken, id last"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":NaN}', id="NaN"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":{"a":tru}}', id="a typing error"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"result":1,}', id="a trailing comma"),
        pytest.param(b'{"id":2,"result":{}}', id="no version"),
        pytest.param(b'{"jsonrpc":"2.0","result":' + b"[" * 9_999 + b"]" * 9_999 + b',"id":2}', id="deep"),
        pytest.param(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":2,"result":{}}', id="a byte order mark"),
        pytest.param(b'{"jsonrpc":"2.0","id":2,"method":7,"result":{}}', id="a number as method"),
    ],
)
def test_an_unreadable_reply_fails_its_own_request_alone(data: bytes):
    talk = Conversation(3)
    talk.hear(data)

    assert isinstance(talk.outcome(2), MalformedReply)
    assert talk.waits(1)
    assert talk.waits(3)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","result":{"a":tru}}',
        b'{"level":"info","jsonrpc":"2.0 message"}',
        b'{"jsonrpc":"2.0","level":"info"}',
        b'{"level":"debug","id":1,"msg":"begins"}',
        b'{"got":{"jsonrpc":"2.0","id":1,"result":{}}}',
        b'[info] {"jsonrpc":"2.0","id":1,"result":{}}',
    ],
)
def test_output_that_is_not_a_reply_fails_no_request_and_is_recorded(data: bytes):
    talk = Conversation(2)
    talk.hear(data)

    assert talk.waits(1)
    assert talk.waits(2)
    assert talk.peer.ignored == {"unparsed": 1}
    assert list(talk.peer.unparsed_output) == [data.decode()]


def test_an_unreadable_notification_fails_no_request():
    talk = Conversation()
    talk.hear(b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":tru}}')

    assert talk.waits()
    assert talk.peer.ignored == {"unparsed": 1}


def test_an_unreadable_reply_to_a_forgotten_request_leaves_the_others_waiting():
    talk = Conversation(2)
    talk.peer.forget(1)
    talk.hear(b'{"jsonrpc":"2.0","id":1,"result":tru}')

    assert talk.waits(2)


@pytest.mark.parametrize(
    "noise", [b"Server listening on port 3000", b"\x1b[32mready\x1b[0m", b"\xff\xfe", b"DEBUG {}"]
)
def test_unparsed_output_is_counted_and_reported_once(noise: bytes):
    talk = Conversation()
    talk.hear(noise, noise, noise)

    assert talk.waits()
    assert talk.peer.ignored == {"unparsed": 3}
    assert [kind for kind, _ in talk.listener.faults] == ["unparsed"]


@pytest.mark.parametrize("blank", [b"", b"  ", b"\r", b"\t\r"])
def test_blank_lines_are_ignored(blank: bytes):
    talk = Conversation()
    talk.hear(blank)

    assert talk.peer.ignored == {}


def test_a_sample_of_unparsed_output_is_short():
    talk = Conversation()
    talk.hear(b"x" * 100_000)

    assert talk.listener.faults[0][1] == "x" * 200 + "…"


def test_the_newest_unparsed_output_is_kept_for_error_messages():
    talk = Conversation()
    talk.hear(*(f"line {n}".encode() for n in range(100)), b"\xff" * 100_000)

    assert list(talk.peer.unparsed_output)[:-1] == [f"line {n}" for n in range(100 - UNPARSED_LINES + 1, 100)]
    assert talk.peer.unparsed_output[-1] == "\ufffd" * 200 + "…"


# --- messages over the limit ---


def test_an_oversized_reply_is_attributed_while_it_arrives():
    talk = Conversation(2)

    assert talk.peer.receive_oversized(b'{"jsonrpc":"2.0","id":2,"result":', b"")
    error = talk.outcome(2)
    assert isinstance(error, MessageTooLarge)
    assert error.limit_bytes == 1000
    assert talk.waits(1)


def test_an_oversized_reply_is_attributed_by_its_tail_at_its_end():
    talk = Conversation(2)

    assert not talk.peer.receive_oversized(b'{"jsonrpc":"2.0","result":{', b"")
    assert talk.waits(1)
    assert talk.waits(2)
    assert talk.peer.ignored == {}

    assert talk.peer.receive_oversized(b'{"jsonrpc":"2.0","result":{', b'},"id":2}')
    assert isinstance(talk.outcome(2), MessageTooLarge)
    assert talk.waits(1)


def test_an_oversized_reply_without_a_readable_id_fails_no_request():
    talk = Conversation(2)

    assert not talk.peer.receive_oversized(b'{"jsonrpc":"2.0","result":{', b"}}")
    assert talk.waits(1)
    assert talk.waits(2)
    assert talk.peer.ignored == {"oversized message": 1}


def test_an_oversized_notification_is_ignored():
    talk = Conversation()

    assert not talk.peer.receive_oversized(b'{"jsonrpc":"2.0","method":"notifications/message"', b"}}")
    assert talk.waits()
    assert talk.peer.ignored == {"oversized message": 1}


# --- what the server sends unasked ---


def test_requests_and_notifications_reach_the_listener():
    talk = Conversation()
    talk.hear(
        b'{"jsonrpc":"2.0","id":7,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":null,"method":"roots/list"}',
        b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"a":1}}',
    )

    assert talk.listener.requests == [(7, "ping"), (None, "roots/list")]
    assert talk.listener.notifications == [("notifications/tools/list_changed", b'{"a":1}')]


def test_a_request_with_the_id_of_a_pending_request_is_a_request():
    talk = Conversation()
    talk.hear(b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}')

    assert talk.waits()
    assert talk.listener.requests == [(1, "ping")]


@pytest.mark.parametrize("params", [b"[]", b'"x"', b"null", b"7", b'{"a":"\xff"}'])
def test_malformed_params_of_a_notification_are_passed_on_unread(params: bytes):
    talk = Conversation()
    talk.hear(b'{"jsonrpc":"2.0","method":"notifications/x","params":' + params + b"}")

    ((method, raw),) = talk.listener.notifications
    assert method == "notifications/x"
    assert bytes(raw) == params


# --- progress ---


def listening() -> tuple[Conversation, list[Progress]]:
    talk, seen = Conversation(), []
    talk.peer.open_request(RecordingWaiter(), seen.append)  # d2
    return talk, seen


def progress(token: object, value: object, **more: object) -> dict[str, object]:
    return {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": value, **more},
    }


def test_progress_reaches_the_request_that_asked_for_it():
    talk, seen = listening()
    talk.hear(progress(2, 1, total=4, message="reading"), progress(2, 2.5))

    assert seen == [Progress(1.0, 4.0, "reading"), Progress(2.5)]


def test_only_increasing_progress_is_reported():
    talk, seen = listening()
    talk.hear(*(progress(2, value) for value in (-1, 0, 0, 3, 2, 3, 3.5)))

    assert [update.progress for update in seen] == [-1, 0, 3, 3.5]


@pytest.mark.parametrize("token", [1, 9, "2", 2.0, True, None, "", [2]], ids=repr)
def test_progress_for_an_unknown_token_is_ignored(token: object):
    talk, seen = listening()
    talk.hear(progress(token, 1))

    assert seen == []


@pytest.mark.parametrize(
    "params",
    [b"null", b"[]", b"{}", b'{"progressToken":2}', b'{"progressToken":2,"progress":"1"}',
     b'{"progressToken":2,"progress":1,"total":"x"}', b'{"progressToken":2,"progress":1,"message":5}',
     b'{"progressToken":2,"progress":' + b"9" * 5_000 + b"}"],
)  # fmt: skip
def test_malformed_progress_is_ignored(params: bytes):
    talk, seen = listening()
    talk.hear(b'{"jsonrpc":"2.0","method":"notifications/progress","params":' + params + b"}")

    assert seen == []
    assert sum(talk.peer.ignored.values()) == 1


@pytest.mark.parametrize("end", ["reply", "error", "forget", "unreadable", "oversized", "lost"])
def test_progress_after_the_end_of_a_request_is_ignored(end: str):
    talk, seen = listening()
    match end:
        case "reply":
            talk.hear(reply(2))
        case "error":
            talk.hear(reply(2, error={"code": 1, "message": ""}))
        case "forget":
            talk.peer.forget(2)
        case "unreadable":
            talk.hear(b'{"jsonrpc":"2.0","id":2,"result":tru}')
        case "oversized":
            talk.peer.receive_oversized(b'{"id":2,"result":{', b"")
        case _:
            talk.peer.fail_all(lambda _: ConnectionLost("box", "gone", may_have_run=True))
    talk.hear(progress(2, 1))

    assert seen == []


def test_a_long_progress_message_is_cut():
    talk, seen = listening()
    talk.hear(progress(2, 1, message="x" * 1_000_000))

    assert seen[0].message == "x" * PROGRESS_MESSAGE_LIMIT + "…"


def test_a_flood_of_unrequested_progress_is_reported_once():
    talk = Conversation()
    talk.hear(*[progress(1, n) for n in range(1000)])

    assert talk.peer.ignored == {"progress for no pending request": 1000}
    assert len(talk.listener.faults) == 1


# --- the end ---


def test_at_the_end_every_request_fails_with_an_error_of_its_own():
    talk = Conversation(3)
    talk.hear(reply(2))
    talk.peer.fail_all(lambda _: ConnectionLost("box", "gone", may_have_run=True))

    assert isinstance(talk.outcome(1), ConnectionLost)
    assert talk.outcome(2) == b"{}"
    assert isinstance(talk.outcome(3), ConnectionLost)
    assert talk.outcome(1) is not talk.outcome(3)
    assert talk.peer.in_flight == 0


# --- properties ---

ENVELOPES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.sampled_from(["2.0", "1.0", 2]),
        "id": st.sampled_from([1, 2, 9, "1", 1.0, True, None, []]),
        "method": st.sampled_from(["ping", "notifications/progress", "notifications/x", 3]),
        "params": st.none()
        | st.just([])
        | st.dictionaries(st.sampled_from(["progressToken", "progress"]), st.integers()),
        "result": st.none() | st.text(max_size=5) | st.dictionaries(st.text(max_size=3), st.integers()),
        "error": st.none() | st.fixed_dictionaries({"code": st.integers(-3, 3) | st.text(max_size=2)}),
    },
)
MESSAGES = ENVELOPES.map(lambda value: json.dumps(value).encode())
MANGLED = st.tuples(MESSAGES, st.integers(0, 80), st.binary(max_size=3)).map(
    lambda given: given[0][: given[1]] + given[2] + given[0][given[1] + 1 :]
)
ANYTHING = (
    st.binary(max_size=60) | MESSAGES | MANGLED | st.lists(ENVELOPES).map(lambda v: json.dumps(v).encode())
)


def is_result_for(request_id: int, data: bytes) -> bool:
    """An independent judgement: is this a proper reply with a result for that id?"""
    try:
        value = json.loads(data)
    except ValueError:
        return False
    members = value if isinstance(value, list) else [value]
    return any(
        isinstance(member, dict)
        and member.get("jsonrpc") == "2.0"
        and type(member.get("id")) is int
        and member.get("id") == request_id
        and "result" in member
        and "error" not in member
        for member in members
    )


@given(st.lists(ANYTHING, max_size=12), st.booleans())
def test_no_bytes_raise_and_only_a_valid_reply_gives_a_result(stream: list[bytes], batches: bool):
    talk = Conversation(2)
    talk.peer.open_request(RecordingWaiter(), lambda _: None)
    talk.peer.accepts_batches = batches
    for data in stream:
        talk.peer.receive(data)

    for request_id, waiter in talk.waiters.items():
        assert len(waiter.resolutions) <= 1
        if any(isinstance(resolution, bytes) for resolution in waiter.resolutions):
            assert any(is_result_for(request_id, data) for data in stream)


@given(st.data())
def test_replies_in_any_order_resolve_each_request_once_and_with_its_own_result(data: st.DataObject):
    count = data.draw(st.integers(1, 20))
    talk = Conversation(count)
    ids = list(talk.waiters)
    doubled = data.draw(st.lists(st.sampled_from(ids)))
    for request_id in data.draw(st.permutations([*ids, *doubled])):
        talk.hear(reply(request_id, result={"for": request_id}))

    for request_id, waiter in talk.waiters.items():
        assert isinstance(waiter.outcome, bytes)
        assert json.loads(waiter.outcome) == {"for": request_id}
    assert talk.peer.in_flight == 0


# --- what answers no request ---


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b" ",
        b"{}",
        b"words",
        b'{"jsonrpc":"2.0","method":"x"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":"other","result":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1}}',
    ],
)
def test_replies_to_no_request_are_reported_periodically(message: bytes):
    talk = Conversation()
    talk.hear(*[message] * (3 * REPORT_EVERY + 1))

    assert talk.listener.unrequested_count == 3 * REPORT_EVERY


def test_replies_and_progress_that_was_asked_for_are_not_reported():
    talk, seen = listening()
    talk.hear(*(progress(2, number) for number in range(2 * REPORT_EVERY)))
    for _ in range(2 * REPORT_EVERY):
        talk.hear(reply(talk.peer.open_request(RecordingWaiter())))

    assert len(seen) == 2 * REPORT_EVERY
    assert talk.listener.unrequested_count == 0
