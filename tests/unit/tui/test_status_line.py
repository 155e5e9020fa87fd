"""The status line at every width."""

from typing import Any

import pytest

from dragoman.agent.events import Usage
from dragoman.servers.status import ServerStatus
from dragoman.tui.status_line import Status, short_count, status_text


def server(status: str) -> ServerStatus:
    return ServerStatus(
        name=status, scope="user", source="", transport="stdio", status=status, phase=None, reason=None,
        since=0.0, attempt=1, error=None, protocol_version=None, server_info={}, capabilities={},
        instructions=None, tool_count=0, problems=(), pid=None, exit_code=None, stderr_tail="", ignored={},
    )  # fmt: skip


FULL: dict[str, Any] = {
    "model": "anthropic:claude-sonnet-5",
    "is_ready": True,
    "context_tokens": 50_000,
    "context_limit": 200_000,
    "usage": Usage(input_tokens=12_345, output_tokens=678, cost_usd=0.0421),
    "servers": tuple(map(server, ("connected", "connected", "failed", "needs-auth", "disabled"))),
}


def test_everything_is_shown_where_there_is_room():
    assert status_text(Status(**FULL), 140).plain == (
        "anthropic:claude-sonnet-5 │ ██░░░░░░ context 25% │ 12.3k in 678 out │ $0.0421 │ mode default │ "
        "2/4 servers, 1 failed, 1 to sign in"
    )


@pytest.mark.parametrize("width", range(10, 140, 7))
def test_it_is_one_line_and_keeps_the_context_longest(width: int):
    text = status_text(Status(**FULL), width).plain
    assert len(text) <= width
    assert "context 25%" in text or width < 11


def test_at_80_columns_model_context_tokens_cost_mode_and_servers_are_there():
    fields = {**FULL, "servers": (server("connected"), server("connected"))}
    text = status_text(Status(**fields), 78).plain
    for part in ("claude-sonnet-5", "context 25%", "12.3k in 678 out", "$0.0421", "default", "2/2 servers"):
        assert part in text


def test_a_full_context_is_shown_as_text():
    assert "context 75% nearly full" in status_text(Status(**{**FULL, "context_tokens": 150_000}), 140).plain


def test_loading_the_model_is_shown():
    assert (
        status_text(Status(model="m:n"), 80).plain == "m:n (loading) │ 0 in 0 out │ mode default │ no servers"
    )


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0"), (999, "999"), (1000, "1.0k"), (99_949, "99.9k"), (200_000, "200k")]
)
def test_numbers_are_abbreviated(count: int, text: str):
    assert short_count(count) == text
