"""The ids of events."""

import pytest

from dragoman.gateway.streams import position_in


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
