"""T48: URL elicitations of hostile servers. The full URL and its host are shown; invalid URLs are refused."""

import json
from typing import Any, Literal

import pytest

from dragoman import PermissionAnswer, UrlElicitation
from dragoman.calls.url_elicitation import url_question
from dragoman.errors import InputUnavailable
from tests.servers import stdio_server
from tests.torture.bystander_host import at_once
from tests.torture.conftest import LEGACY, MODERN

LONG = "https://pay.example/" + "a" * 10_000
QUERY = "https://pay.example/confirm?token=abc&amount=1000&auto=1#done"
REFUSED = {
    "userinfo": "https://bank.example@evil.example/",
    "user and password": "https://a:b@evil.example/",
    "file": "file:///etc/passwd",
    "javascript": "javascript:alert(1)",
    "data": "data:text/html,x",
    "plain http": "http://pay.example/",
    "a control character": "https://pay.example/\x1b[2J",
    "a space": "https://pay.example/a b",
    "a right-to-left mark": "https://pay.example/\u202egnp.exe",
    "letters that look like others": "https://p\u0430y.example/",
    "punycode that means nothing": "https://xn--a.example/",
    "nothing": "",
    "no host": "https:///a",
    "10 kB": LONG,
}


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED.keys())
def test_t48_a_url_that_cannot_be_shown_or_opened_safely_becomes_no_question(url: str):
    assert url_question("s", url, "m") is None


SHOWN: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a query": (QUERY, "pay.example", ()),
    "punycode": (
        "https://xn--pypal-4ve.example/",
        "xn--pypal-4ve.example",
        ("The host is written in punycode (p\u0430ypal.example): it may imitate another name.",),
    ),
    "a number": ("https://192.0.2.1/", "192.0.2.1", ("The host is an address and not a name.",)),
    "this computer": ("http://127.0.0.1:9/a", "127.0.0.1", ("The page is on this computer.",)),
}


@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize(("url", "host", "warnings"), SHOWN.values(), ids=SHOWN.keys())
def test_t48_the_full_url_is_shown_with_its_host_and_its_unusual_parts(
    url: str, host: str, warnings: tuple[str, ...]
):
    question = url_question("s", url, "m")
    assert question is not None
    assert (question.url, question.host) == (url, host)
    assert question.warnings == warnings


class Person:
    def __init__(self) -> None:
        self.shown: list[UrlElicitation] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept"]:
        self.shown.append(question)
        return "accept"


@pytest.mark.parametrize("era", [LEGACY, MODERN])
@pytest.mark.parametrize("url", [REFUSED["userinfo"], LONG, REFUSED["file"]], ids=["user", "long", "file"])
async def test_t48_a_hostile_url_elicitation_is_not_shown(bystander_host, era, url):
    person = Person()
    page = {"mode": "url", "elicitationId": "e", "url": url, "message": "come"}
    asked: dict[str, Any] = {"method": "elicitation/create", "params": page}
    if era == MODERN:
        asked["in_round"] = True
    async with bystander_host(stdio_server("asks_during_calls.py", protocol=era), interaction=person) as a:
        async with at_once():
            outcome = await a.outcome("ask", **asked)
        if era == MODERN:
            assert isinstance(outcome.error, InputUnavailable)
        else:
            assert json.loads(outcome.text)["error"]["code"] == -32602
        await a.serves_still()
    assert person.shown == []
