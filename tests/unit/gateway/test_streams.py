"""Messages that wait for a client."""

import pytest

from dragoman.gateway.streams import Outbox, position_in


async def test_messages_come_in_order_until_the_end():
    outbox = Outbox()
    outbox.put(b"1")
    outbox.put(b"2")
    outbox.end()
    assert [await outbox.get() for _ in range(3)] == [b"1", b"2", None]


async def test_messages_can_be_read_again_from_a_number():
    outbox = Outbox()
    for number in range(4):
        outbox.put(b"%d" % number)
    assert [await outbox.get() for _ in range(3)] == [b"0", b"1", b"2"]
    outbox.read_count = 1
    assert [await outbox.get() for _ in range(3)] == [b"1", b"2", b"3"]


async def test_the_oldest_messages_are_dropped_over_the_limit():
    outbox = Outbox(limit=2)
    for number in range(5):
        outbox.put(b"%d" % number)
    outbox.end()
    assert [await outbox.get() for _ in range(3)] == [b"3", b"4", None]


async def test_without_keeping_a_message_that_was_read_is_released():
    outbox = Outbox(limit=2, keeps_read=False)
    for number in range(3):
        outbox.put(b"%d" % number)
    assert [await outbox.get(), await outbox.get()] == [b"1", b"2"]
    assert len(outbox._messages) == 0  # pyright: ignore[reportPrivateUsage]
    outbox.put(b"3")
    outbox.end()
    assert [await outbox.get(), await outbox.get()] == [b"3", None]


@pytest.mark.parametrize(
    ("event_id", "found"),
    [
        ("s1.4", ("s1", 4)),
        ("s1.0", ("s1", 0)),
        ("", None),
        ("s1", None),
        (".4", None),
        ("s1.x", None),
        ("s1.-1", None),
        ("s1.\u0664", None),
    ],
)
def test_the_position_in_an_event_id(event_id: str, found: tuple[str, int] | None):
    assert position_in(event_id) == found
