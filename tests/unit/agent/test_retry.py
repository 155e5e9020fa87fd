"""What a failed request to a model leads to."""

import pytest
from pydantic_ai import exceptions as e

from dragoman.agent.retry import react

pytestmark = pytest.mark.requirement("AGT-2")

M = "m"


@pytest.mark.parametrize(
    ("error", "attempt", "action", "wait_seconds"),
    [
        (e.ModelRateLimitError(M, ""), 1, "retry", 1.0),
        (e.ModelRateLimitError(M, "", retry_after=7.0), 1, "retry", 7.0),
        (e.ModelRateLimitError(M, "", retry_after=120.0), 1, "fail", 0.0),
        (e.ModelOverloadedError(M, ""), 3, "retry", 4.0),
        (e.ModelOverloadedError(M, "", in_stream=True), 5, "retry", 16.0),
        (e.ModelServerError(M, ""), 6, "fail", 0.0),
        (e.ModelConnectionError(M, ""), 2, "retry", 2.0),
        (e.ModelTimeoutError(M, ""), 1, "retry", 1.0),
        (e.ModelQuotaExceededError(M, ""), 1, "fail", 0.0),
        (e.ModelAuthenticationError(M, ""), 1, "fail", 0.0),
        (e.ModelNotFoundError(M, ""), 1, "fail", 0.0),
        (e.ModelContextWindowExceededError(M, ""), 1, "compact", 0.0),
        (e.ModelHTTPError(418, M), 1, "fail", 0.0),
        (e.ModelAPIError(M, "what the provider wrote"), 1, "fail", 0.0),
    ],
)
def test_the_reaction_to_each_failure(error: e.ModelAPIError, attempt: int, action: str, wait_seconds: float):
    found = react(error, attempt)
    assert (found.action, found.wait_seconds) == (action, wait_seconds)
    assert "what the provider wrote" not in found.reason


@pytest.mark.parametrize(
    ("url", "where"),
    [
        ("http://127.0.0.1:1/v1/", "the provider at http://127.0.0.1:1"),
        ("http://user:canary@[::1]:8080/canary?key=canary", "the provider at http://[::1]:8080"),
        (None, "the provider"),
    ],
)
def test_an_unreachable_provider_is_named_without_keys(url: str | None, where: str):
    for attempt in (1, 6):
        assert (
            react(e.ModelConnectionError(M, ""), attempt, url).reason == f"the connection to {where} failed"
        )
        assert react(e.ModelTimeoutError(M, ""), attempt, url).reason == f"{where} did not answer in time"
