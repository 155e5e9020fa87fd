"""The helpers in `dragoman.testing` do what their users rely on."""

from dragoman import testing
from dragoman.interaction import PermissionAnswer, PermissionQuestion
from dragoman.testing import FakeClock, ScriptedUser

QUESTION = PermissionQuestion(server="s", tool="t", title="t", arguments={})


def test_the_list_of_public_helpers():
    assert testing.__all__ == ["FakeClock", "InMemoryServer", "ScriptedUser", "ToolContext"]


def test_a_fake_clock_advances_only_on_request():
    clock = FakeClock(100.0)
    assert (clock.now(), clock.now(), clock.monotonic()) == (100.0, 100.0, 100.0)

    clock.advance(2.5)
    assert (clock.now(), clock.monotonic()) == (102.5, 102.5)


async def test_a_scripted_user_answers_in_order_and_repeats_the_last_answer():
    user = ScriptedUser(True, PermissionAnswer(False, "no"), True)

    answers = [await user.allow(QUESTION) for _ in range(4)]
    assert answers == [
        PermissionAnswer(True),
        PermissionAnswer(False, "no"),
        PermissionAnswer(True),
        PermissionAnswer(True),
    ]
    assert user.asked == [QUESTION] * 4


async def test_a_user_without_a_script_refuses():
    assert await ScriptedUser().allow(QUESTION) == PermissionAnswer(False)
