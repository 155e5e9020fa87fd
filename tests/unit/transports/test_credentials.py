"""Headers that say who asks: laid over the others, and renewed once for all who were refused with them."""

import asyncio
from collections.abc import Mapping

import pytest

from dragoman.errors import SignInNeeded
from dragoman.transports.credentials import NoCredentials, Signer, laid_over

pytestmark = pytest.mark.requirement("AUT-9")


class Keys:
    """Gives a new key each time that it is told that the last was refused; slowly."""

    def __init__(self, *failures: Exception | None) -> None:
        self.asked: list[bool] = []
        self.runs = 0
        self._failures = list(failures)

    async def headers(self, *, renewed: bool) -> Mapping[str, str]:
        self.asked.append(renewed)
        if renewed:
            await asyncio.sleep(0.01)
            self.runs += 1
            failure = self._failures.pop(0) if self._failures else None
            if failure is not None:
                raise failure
        return {"Authorization": f"Bearer {self.runs}"}


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_they_take_the_place_of_others_however_these_are_spelled(name: str):
    assert laid_over({name: "old", "X": "y"}, {"Authorization": "new"}) == {"X": "y", "Authorization": "new"}


async def test_one_message_that_is_refused_is_signed_anew():
    signer = Signer(Keys())
    first = await signer.sign({"X": "y"})
    second = await signer.sign_again({"X": "y"}, first)
    assert [first.headers, second.headers] == [
        {"X": "y", "Authorization": "Bearer 0"},
        {"X": "y", "Authorization": "Bearer 1"},
    ]
    assert signer.secrets == ("Bearer 1",)


async def test_all_who_were_refused_with_the_same_ones_share_one_renewal():
    keys = Keys()
    signer = Signer(keys)
    signed = [await signer.sign({}) for _ in range(50)]
    again = await asyncio.gather(*(signer.sign_again({}, each) for each in signed))
    assert keys.runs == 1
    assert {each.headers["Authorization"] for each in again} == {"Bearer 1"}
    late = await signer.sign_again({}, signed[0])
    assert (keys.runs, late.headers["Authorization"]) == (1, "Bearer 1"), "however late its refusal comes"
    await signer.sign_again({}, late)
    assert keys.runs == 2, "those of the renewal are refused as well"


@pytest.mark.parametrize(
    ("failure", "cause", "hint"),
    [
        (SignInNeeded("box", "connect", "its helper failed", hint="do this"), "its helper failed", "do this"),
        (RuntimeError("s3cret"), "no credentials could be obtained: RuntimeError", None),
    ],
    ids=["in words", "a bug"],
)
async def test_a_renewal_that_fails_is_told_to_all_who_share_it_and_not_tried_by_each(
    failure: Exception, cause: str, hint: str | None
):
    keys = Keys(failure)
    signer = Signer(keys)
    signed = [await signer.sign({}) for _ in range(5)]
    ends = await asyncio.gather(*(signer.sign_again({}, each) for each in signed), return_exceptions=True)
    assert keys.runs == 1
    assert all(isinstance(end, NoCredentials) for end in ends)
    trouble = ends[0].failure  # type: ignore[union-attr]
    assert (trouble.cause, trouble.hint, trouble.status, trouble.may_have_run) == (cause, hint, 401, False)
    await signer.sign_again({}, await signer.sign({}))
    assert keys.runs == 2, "the next refusal is another matter"


async def test_if_who_renews_is_cancelled_the_next_in_line_does():
    keys = Keys()
    signer = Signer(keys)
    signed = await signer.sign({})
    first = asyncio.create_task(signer.sign_again({}, signed))
    second = asyncio.create_task(signer.sign_again({}, signed))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).headers == {"Authorization": "Bearer 1"}
    assert keys.runs == 1


async def test_what_is_asked_for_ahead_is_used_once():
    keys = Keys()
    signer = Signer(keys)
    await signer.prepare()
    assert (await signer.sign({})).headers == {"Authorization": "Bearer 0"}
    assert keys.asked == [False]
    await signer.sign({})
    assert keys.asked == [False, False]


async def test_a_failure_ahead_of_time_is_told_to_the_first_who_asks():
    class Broken:
        async def headers(self, *, renewed: bool) -> Mapping[str, str]:
            raise SignInNeeded("box", "connect", "no")

    signer = Signer(Broken())
    await signer.prepare()
    with pytest.raises(NoCredentials, match="no"):
        await signer.sign({})
