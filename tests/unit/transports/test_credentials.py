"""Headers that say who asks: laid over the others, and renewed once for all who were refused with them."""

import asyncio
from collections.abc import Mapping

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from dragoman.credentials import Challenge, OutgoingRequest
from dragoman.errors import SignInNeeded
from dragoman.transports.credentials import (
    CHALLENGE_BYTES,
    CHALLENGE_LIMIT,
    NoCredentials,
    Signed,
    Signer,
    challenge_in,
    send_signed,
    with_overrides,
)

pytestmark = pytest.mark.requirement("AUT-9")


class Keys:
    """Gives a new key each time that it is told that the last was refused; slowly."""

    def __init__(self, *failures: Exception | None) -> None:
        self.asked = 0
        self.runs = 0
        self._failures = list(failures)

    async def headers(self) -> Mapping[str, str]:
        self.asked += 1
        return {"Authorization": f"Bearer {self.runs}"}

    async def renew(self, challenge: Challenge) -> bool:
        await asyncio.sleep(0.01)
        self.runs += 1
        failure = self._failures.pop(0) if self._failures else None
        if failure is not None:
            raise failure
        return True


REQUEST = OutgoingRequest("POST", "https://example.com/mcp", b"{}")


async def again(signer: Signer, refused: Signed, headers: Mapping[str, str] | None = None) -> Signed:
    signed = await signer.sign_again(headers or {}, REQUEST, refused, Challenge(401))
    assert signed is not None
    return signed


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_they_replace_other_headers_in_any_spelling(name: str):
    assert with_overrides({name: "old", "X": "y"}, {"Authorization": "new"}) == {
        "X": "y",
        "Authorization": "new",
    }


async def test_a_refused_message_is_signed_again():
    signer = Signer(Keys())
    first = await signer.sign({"X": "y"}, REQUEST)
    second = await again(signer, first, {"X": "y"})
    assert [first.headers, second.headers] == [
        {"X": "y", "Authorization": "Bearer 0"},
        {"X": "y", "Authorization": "Bearer 1"},
    ]
    assert signer.secrets == ("Bearer 1",)


async def test_all_messages_refused_with_the_same_credentials_share_one_renewal():
    keys = Keys()
    signer = Signer(keys)
    signed = [await signer.sign({}, REQUEST) for _ in range(50)]
    renewed = await asyncio.gather(*(again(signer, each) for each in signed))
    assert keys.runs == 1
    assert {each.headers["Authorization"] for each in renewed} == {"Bearer 1"}
    late = await again(signer, signed[0])
    assert (keys.runs, late.headers["Authorization"]) == (1, "Bearer 1"), "however late its refusal comes"
    await again(signer, late)
    assert keys.runs == 2, "those of the renewal are refused as well"


@pytest.mark.parametrize(
    ("failure", "cause", "hint"),
    [
        (SignInNeeded("box", "connect", "its helper failed", hint="do this"), "its helper failed", "do this"),
        (RuntimeError("s3cret"), "no credentials could be obtained: RuntimeError", None),
    ],
    ids=["in words", "a bug"],
)
async def test_a_failed_renewal_fails_all_messages_that_share_it_without_further_attempts(
    failure: Exception, cause: str, hint: str | None
):
    keys = Keys(failure)
    signer = Signer(keys)
    signed = [await signer.sign({}, REQUEST) for _ in range(5)]
    ends = await asyncio.gather(*(again(signer, each) for each in signed), return_exceptions=True)
    assert keys.runs == 1
    assert all(isinstance(end, NoCredentials) for end in ends)
    trouble = ends[0].failure  # type: ignore[union-attr]
    assert (trouble.cause, trouble.hint, trouble.status, trouble.may_have_run) == (cause, hint, 401, False)
    await again(signer, await signer.sign({}, REQUEST))
    assert keys.runs == 2, "the next refusal is another matter"


async def test_if_a_renewal_is_cancelled_the_next_message_renews():
    keys = Keys()
    signer = Signer(keys)
    signed = await signer.sign({}, REQUEST)
    first = asyncio.create_task(again(signer, signed))
    second = asyncio.create_task(again(signer, signed))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).headers == {"Authorization": "Bearer 1"}
    assert keys.runs == 1


async def test_credentials_fetched_in_advance_are_used_once():
    keys = Keys()
    signer = Signer(keys)
    await signer.prepare()
    assert (await signer.sign({}, REQUEST)).headers == {"Authorization": "Bearer 0"}
    assert keys.asked == 1
    await signer.sign({}, REQUEST)
    assert keys.asked == 2


async def test_a_failure_to_fetch_in_advance_is_raised_to_the_first_message():
    class Broken:
        async def headers(self) -> Mapping[str, str]:
            raise SignInNeeded("box", "connect", "no")

        async def renew(self, challenge: Challenge) -> bool:
            return False

    signer = Signer(Broken())
    await signer.prepare()
    with pytest.raises(NoCredentials, match="no"):
        await signer.sign({}, REQUEST)


# --- one message, sent at most twice ---


class Reply:
    """The answer of a server: a status, perhaps with headers."""

    def __init__(self, status: int, *headers: tuple[str, str]) -> None:
        self.status = status
        self.headers = CIMultiDictProxy(CIMultiDict(headers))
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


class StepUp:
    """Credentials that renew for some statuses, and cannot for others."""

    def __init__(self, renews: tuple[int, ...], failure: Exception | None = None) -> None:
        self.challenges: list[Challenge] = []
        self._renews = renews
        self._failure = failure

    async def headers(self) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {len(self.challenges)}"}

    async def renew(self, challenge: Challenge) -> bool:
        self.challenges.append(challenge)
        if self._failure is not None:
            raise self._failure
        return challenge.status in self._renews


NEEDED = SignInNeeded("box", "connect", "sign in")


@pytest.mark.parametrize(
    ("credentials", "statuses", "renewals", "outcome"),
    [
        (None, [200], 0, 200),
        (None, [401], 0, 401),
        (None, [403], 0, 403),
        (StepUp((401,)), [200], 0, 200),
        (StepUp((401,)), [500], 0, 500),
        (StepUp((401,)), [407], 0, 407),
        (StepUp((401,)), [401, 200], 1, 200),
        (StepUp((401,)), [401, 401], 1, 401),
        (StepUp((401,)), [401, 403], 1, 403),
        (StepUp((401,)), [403], 1, 403),
        (StepUp((401, 403)), [403, 200], 1, 200),
        (StepUp((401, 403)), [403, 403], 1, 403),
        (StepUp((401, 403)), [403, 401], 1, 401),
        (StepUp(()), [401], 1, 401),
        (StepUp((401,), NEEDED), [401], 1, "sign in"),
        (StepUp((403,), NEEDED), [403], 1, "sign in"),
        (StepUp((401,), OSError("s3cret")), [401], 1, "no credentials could be obtained: OSError"),
    ],
    ids=lambda value: str(value) if isinstance(value, list) else None,
)
async def test_a_refused_message_is_sent_once_more_if_its_credentials_were_renewed(
    credentials: StepUp | None, statuses: list[int], renewals: int, outcome: int | str
):
    replies = [Reply(status) for status in statuses]
    sent: list[Mapping[str, str]] = []

    async def send(headers: Mapping[str, str]) -> Reply:
        sent.append(headers)
        return replies[len(sent) - 1]

    signer = None if credentials is None else Signer(credentials)
    try:
        found: int | str = (await send_signed(signer, {"X": "y"}, REQUEST, send)).status
    except NoCredentials as error:
        found = error.failure.cause
    assert found == outcome
    own = [{} if credentials is None else {"Authorization": f"Bearer {n}"} for n in range(len(statuses))]
    assert sent == [{"X": "y", **each} for each in own]
    assert len(credentials.challenges if credentials else []) == renewals
    used = isinstance(outcome, int)
    assert [reply.is_closed for reply in replies] == [True] * (len(replies) - used) + [False] * used


class Hearing(StepUp):
    """Credentials that are told which of them were accepted."""

    def __init__(self, renews: tuple[int, ...]) -> None:
        super().__init__(renews)
        self.taken: list[str] = []

    def accepted(self, headers: Mapping[str, str]) -> None:
        self.taken.append(headers["Authorization"])


@pytest.mark.requirement("AUT-3")
@pytest.mark.parametrize(
    ("statuses", "accepted"),
    [
        ([200], ["Bearer 0"]),
        ([500], ["Bearer 0"]),
        ([401, 200], ["Bearer 1"]),
        ([401, 401, 200], ["Bearer 2"]),
        ([401, 401, 401], []),
        ([401, 403], []),
    ],
    ids=str,
)
async def test_credentials_with_an_accepted_callback_are_renewed_up_to_twice(
    statuses: list[int], accepted: list[str]
):
    credentials = Hearing((401,))
    replies = [Reply(status) for status in statuses]
    left = iter(replies)

    async def send(headers: Mapping[str, str]) -> Reply:
        return next(left)

    assert (await send_signed(Signer(credentials), {}, REQUEST, send)).status == statuses[-1]
    assert credentials.taken == accepted
    assert list(left) == []
    assert [reply.is_closed for reply in replies] == [True] * (len(replies) - 1) + [False]


async def test_a_renewal_gets_the_challenge_and_the_sent_headers():
    credentials = StepUp((403,))
    wanted = 'Bearer error="insufficient_scope", scope="files"'
    replies = [
        Reply(403, ("WWW-Authenticate", wanted), ("www-authenticate", "DPoP"), ("DPoP-Nonce", "n1")),
        Reply(200),
    ]

    async def send(headers: Mapping[str, str]) -> Reply:
        return replies.pop(0)

    await send_signed(Signer(credentials), {"X": "y"}, REQUEST, send)
    assert credentials.challenges == [
        Challenge(403, (wanted, "DPoP"), "n1", {"X": "y", "Authorization": "Bearer 0"})
    ]
    assert repr(credentials.challenges[0]) == "<Challenge 403>"


def test_headers_over_the_limits_are_not_part_of_a_challenge():
    long = "x" * (CHALLENGE_BYTES + 1)
    many = [("WWW-Authenticate", str(number)) for number in range(CHALLENGE_LIMIT + 1)]
    found = challenge_in(Reply(401, ("WWW-Authenticate", long), *many, ("DPoP-Nonce", long)), {})
    assert found == Challenge(401, tuple(str(number) for number in range(CHALLENGE_LIMIT)))
