"""Messages that wait for a client."""

import asyncio

import pytest

from dragoman.gateway import outbox as module
from dragoman.gateway.outbox import NotReading, Outbox
from dragoman.wire.codec import encode_notification, encode_request, encode_result

CHANGED = encode_notification("notifications/tools/list_changed")


def progress(number: int) -> bytes:
    return encode_notification("notifications/progress", {"progressToken": 1, "progress": number})


def reply(number: int, size: int = 0) -> bytes:
    return encode_result(number, {"text": "x" * size})


async def all_of(outbox: Outbox) -> list[bytes]:
    outbox.end()
    found: list[bytes] = []
    while (message := await outbox.get()) is not None:
        found.append(message)
    return found


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAITING_BYTES", 1000)
    monkeypatch.setattr(module, "CROWDED_BYTES", 500)
    monkeypatch.setattr(module, "WAITING_LIMIT", 8)
    monkeypatch.setattr(module, "CROWDED_LIMIT", 4)


async def test_messages_are_read_in_order_until_the_end():
    outbox = Outbox()
    outbox.put(b"1")
    outbox.put(b"2")
    assert await all_of(outbox) == [b"1", b"2"]
    assert await outbox.get() is None


async def test_a_reader_without_a_message_in_time_gets_one_empty_message():
    outbox = Outbox()
    reading = asyncio.create_task(outbox.get())
    await asyncio.sleep(0)
    outbox.set_late()
    assert await reading == b""
    outbox.set_late()
    outbox.put(b"1")
    assert await all_of(outbox) == [b"1"]


async def test_messages_can_be_read_again_from_a_number():
    outbox = Outbox()
    for number in range(4):
        outbox.put(b"%d" % number)
    assert [await outbox.get() for _ in range(3)] == [b"0", b"1", b"2"]
    assert outbox.rewind(1)
    assert [await outbox.get() for _ in range(3)] == [b"1", b"2", b"3"]
    assert outbox.held_bytes == 4


async def test_without_keeping_a_message_that_was_read_is_released():
    outbox = Outbox(keeps_read=False)
    outbox.put(b"1")
    assert outbox.held_bytes == 1
    assert await outbox.get() == b"1"
    assert outbox.held_bytes == 0
    assert not outbox.rewind(0)
    outbox.put(b"2")
    assert await all_of(outbox) == [b"2"]


async def test_if_only_notifications_wait_the_newest_are_kept():
    outbox = Outbox(keeps_read=False, oldest_dropped_over=2)
    for number in range(5):
        outbox.put(b"%d" % number)
    assert outbox.held_bytes == 2
    assert await all_of(outbox) == [b"3", b"4"]


@pytest.mark.usefixtures("small")
async def test_under_load_progress_is_left_out_and_equal_notifications_are_merged():
    outbox = Outbox()
    big = reply(1, 500)
    for message in (progress(1), big, progress(2), CHANGED, progress(3), CHANGED, reply(2)):
        outbox.put(message)
    assert await all_of(outbox) == [progress(1), big, CHANGED, reply(2)]


@pytest.mark.usefixtures("small")
async def test_many_small_messages_count_as_load():
    outbox = Outbox()
    for number in range(6):
        outbox.put(progress(number))
    outbox.put(reply(1))
    assert await all_of(outbox) == [*map(progress, range(4)), reply(1)]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("message", [reply(3), encode_request(1, "roots/list", None)])
async def test_over_the_limit_no_reply_is_dropped_and_the_client_is_disconnected(message: bytes):
    done: list[str] = []
    outbox = Outbox()
    outbox.disconnect = lambda: done.append("disconnected")
    outbox.on_overflow = lambda: done.append("cancelled")
    outbox.put(reply(1, 900))
    outbox.put(reply(2, 5000))
    assert done == []
    outbox.put(message)
    assert done == ["disconnected", "cancelled"]
    assert outbox.held_bytes == 0
    outbox.put(message)
    assert len(done) == 2
    assert not outbox.rewind(0)
    with pytest.raises(NotReading):
        await outbox.get()


@pytest.mark.usefixtures("small")
async def test_too_many_replies_are_over_the_limit():
    outbox = Outbox()
    for number in range(8):
        outbox.put(reply(number))
    assert not outbox.has_overflowed
    outbox.put(reply(8))
    assert outbox.has_overflowed


@pytest.mark.usefixtures("small")
async def test_read_messages_are_kept_up_to_the_limit_and_always_the_newest():
    outbox = Outbox()
    for number in range(3):
        outbox.put(reply(number, 600))
        assert await outbox.get() == reply(number, 600)
    assert outbox.held_bytes == len(reply(2, 600))
    assert not outbox.rewind(1)
    assert outbox.rewind(2)
    assert await all_of(outbox) == [reply(2, 600)]
    outbox = Outbox()
    outbox.put(reply(0, 5000))
    await outbox.get()
    assert outbox.rewind(0)
    assert await outbox.get() == reply(0, 5000)
