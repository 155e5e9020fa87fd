"""What a caller with sign-ins of its own may see, and the pages for its browser, without a network."""

import contextlib
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.gateway.callers import IDLE_SECONDS, CallerHosts
from dragoman.gateway.settings import CallerEntry, Selection
from dragoman.gateway.settings_file import read_settings
from dragoman.gateway.sign_in_pages import PageRequest, SignInPages, is_replica
from dragoman.interaction import Caller

URL = "https://tools.example.com"


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (Selection(), True),
        (Selection(servers=("tracker",)), True),
        (Selection(servers=("files",)), False),
        (Selection(servers=()), False),
        (Selection(tools=()), False),
        (Selection(tools=("*",)), True),
        (Selection(tools=("track*",)), True),
        (Selection(tools=("track",)), False),
        (Selection(tools=("tracker__list",)), True),
        (Selection(tools=("tracker__l*",)), True),
        (Selection(tools=("files__*", "tracker__*")), True),
        (Selection(tools=("tracker2__*",)), False),
        (Selection(servers=("files",), tools=("tracker__*",)), False),
        (CallerEntry(token="x", servers=("tracker",), tools=("tracker__*",)), True),
    ],
)
def test_whether_a_selection_may_have_a_tool_of_a_server_whose_tools_are_not_known(
    selection: Selection, expected: bool
):
    assert selection.offers_some_tool("tracker", "tracker__") is expected


def test_a_caller_cannot_have_the_name_that_a_token_of_the_issuer_gives(tmp_path: Path):
    path = tmp_path / "gateway.json"
    path.write_text(
        '{"callers": {"ada@https://i.example": {"token": "0123456789abcdef"}},'
        ' "oauth": {"issuer": "https://i.example", "audience": "https://t.example/mcp"}}'
    )
    path.chmod(0o600)
    with pytest.raises(ConfigError, match="has the name that a token of the issuer gives"):
        read_settings(path)


async def test_over_https_the_cookie_is_bound_to_this_host_only():
    pages = SignInPages(f"{URL}/")
    async with pages.begin("ada", "tracker", contextlib.nullcontext()) as pending:
        link = pending.page_for("https://login.example/authorize?x=1")
        assert link == f"{URL}/sign-in/{pending.id}"
        assert pending.redirect_uri == f"{URL}/oauth/callback"
        shown = await pages.answer(PageRequest(pending.id, {}))
        name, _, rest = shown.headers["Set-Cookie"].partition("=")
        assert name.startswith("__Host-dragoman-sign-in-")
        assert rest.endswith("; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure")
        found = re.search(r'name="token" value="([^"]*)"', shown.body)
        assert found is not None
        cookies = {name: rest.partition(";")[0]}
        pressed = await pages.answer(PageRequest(pending.id, cookies, found[1]))
        assert (pressed.status, pressed.headers["Location"]) == (303, "https://login.example/authorize?x=1")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("0123456789ab", True), ("", False), ("all", False), ("0123456789AB", False), ("0123456789ab\n", False)],
)
def test_which_names_of_replicas_are_valid(name: str, expected: bool):
    assert is_replica(name) is expected


def test_the_repr_of_a_page_request_shows_no_content():
    assert repr(PageRequest("a.b", {"c": "secret"}, "t", "/?code=secret")) == "<PageRequest>"


class BrokenServers:
    """The servers of a caller, which cannot be closed."""

    caller = Caller("ada\x1b[2J")
    use_count = 0
    last_used = -IDLE_SECONDS * 2

    async def close(self) -> None:
        raise ValueError("secret")


async def test_servers_of_a_caller_that_cannot_be_closed_are_reported_and_others_are_closed():
    shared: Any = None
    hosts, reported = CallerHosts(shared, SignInPages(URL)), list[str]()
    hosts.report = reported.append
    broken: Any = BrokenServers()
    hosts._open[broken.caller] = broken  # pyright: ignore[reportPrivateUsage]
    hosts.close_idle()
    assert len(hosts) == 0
    await hosts.close()
    assert reported == ["the servers of ada\\x1b[2J could not be closed: unexpected error ValueError"]
