"""T28: URLs from servers: none is opened, fetched or run automatically; hostile ones are not shown to
anyone."""

import asyncio
import json
import os
import select
import subprocess
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

from dragoman.calls.url_elicitation import url_question
from dragoman.errors import RemoteError, SignInFailed
from dragoman.interaction import PermissionAnswer, UrlElicitation
from tests.e2e.command import LIMIT_SECONDS, plain
from tests.e2e.forked import Terminal
from tests.servers.web import Streamable, answers, streamable
from tests.servers.web.auth_world import AuthWorld, Browser, answering
from tests.servers.web.given_answers import replace_results
from tests.torture.bystander_host import BystanderHost, until
from tests.torture.network import LEGACY, MODERN
from tests.torture.projects import Listener
from tests.torture.signed_in import host_of

pytestmark = pytest.mark.requirement("CAL-5")

PLACE = "{place}"
"""A placeholder for the host and port of a listener that must get no connection."""

HOSTILE_ADDRESSES: dict[str, str] = {
    "javascript": "javascript:alert(1)",
    "javascript with slashes": "javascript://{place}/%0aalert(1)",
    "a file": "file:///etc/passwd",
    "a file elsewhere": "file://{place}/share",
    "an editor": "vscode://x",
    "data": "data:text/html,<script>alert(1)</script>",
    "ftp": "ftp://{place}/",
    "a web socket": "ws://{place}/",
    "mail": "mailto:x@example.com",
    "a shell inside a user": "https://a$(touch${IFS}{canary})b@as.example/",
    "a shell in the path": "https://as.example/$(touch {canary})",
    "a shell without spaces": "https://as.example/$(touch${IFS}{canary})",
    "only a substitution": "https://as.example/$(calc)",
    "a variable": "https://as.example/$HOME",
    "backticks": "https://as.example/`calc`",
    "double quotes": 'https://as.example/";calc;"',
    "single quotes": "https://as.example/';calc;'",
    "a pipe": "https://as.example/|calc",
    "angle brackets": "https://as.example/<calc>",
    "a caret": "https://as.example/^calc",
    "braces": "https://as.example/{a,b}",
    "a flag": "-oProxyCommand=x",
    "a longer flag": "--new-window=https://as.example/",
    "two lines": "https://as.example/\r\nX:1",
    "a line feed": "https://as.example/\nX:1",
    "a tab": "https://as.example/\tx",
    "a space": "https://as.example/ x",
    "a space in front": " https://as.example/",
    "NUL": "https://as.example/\0x",
    "an escape": "https://as.example/\x1b]0;x\x07",
    "a C1 control": "https://as.example/\x9bx",
    "a delete": "https://as.example/\x7f",
    "turned round": "https://as.example/\u202egpj.exe",
    "invisible": "https://as.example/\u200bx",
    "a foreign host": "https://аpple.example/",
    "a full-width dot": "https://evil\uff0eexample/",
    "a user": "https://user@{place}/",
    "a user and a password": "https://good.example:secret@{place}/",
    "a user that is empty": "https://@{place}/",
    "a user behind a backslash": "https://good.example\\@{place}/",
    "an escaped host": "https://%65vil.example/",
    "no host": "https:///path",
    "only a scheme": "https://",
    "one slash": "https:/as.example/",
    "no scheme": "//{place}/",
    "plain text": "as.example",
    "a port that is none": "https://as.example:port/",
    "a port too far": "https://as.example:65536/",
    "no TLS": "http://as.example/",
    "no TLS, almost here": "http://127.0.0.1.as.example/",
    "no TLS, somebody called local": "http://localhost.as.example/",
    "10 kB": "https://as.example/" + "a" * 10_000,
    "70 kB": "https://as.example/" + "a" * 70_000,
    "nothing": "",
}


class AcceptsEverything:
    """Answers yes to every question, and records the questions."""

    def __init__(self) -> None:
        self.visited: list[UrlElicitation] = []

    async def allow(self, question: Any) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_url(self, question: UrlElicitation) -> Literal["accept", "decline", "cancel"]:
        self.visited.append(question)
        return "accept"


class Openers:
    """Records every function that could open something, and prevents it."""

    NAMES = (
        (webbrowser, ("open", "open_new", "open_new_tab", "get")),
        (subprocess, ("Popen", "run", "call", "check_call", "check_output", "getoutput")),
        (os, ("system", "popen", "execv", "execve", "execvp", "posix_spawn", "posix_spawnp", "fork")),
        (asyncio, ("create_subprocess_exec", "create_subprocess_shell")),
    )

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        for module, names in self.NAMES:
            for name in names:
                monkeypatch.setattr(module, name, self._noting(f"{module.__name__}.{name}"))

    def _noting(self, name: str) -> Callable[..., Any]:
        def opener(*words: Any, **more: Any) -> Any:
            self.calls.append(f"{name} {words}")
            raise OSError("not in this test")

        return opener


@pytest.fixture
def openers() -> Iterator[Callable[[], Openers]]:
    """Called after everything is connected: the bystander is a process as well."""
    with pytest.MonkeyPatch.context() as patch:
        yield lambda: Openers(patch)


@pytest.fixture
def listener() -> Iterator[Listener]:
    with Listener() as listening:
        yield listening


def spelled(address: str, listener: Listener, home: Path) -> str:
    place = f"127.0.0.1:{listener.port}"
    return address.replace(PLACE, place).replace("{canary}", str(home / "canary"))


# --- the three messages in which a server can name a URL ---


async def in_an_error(a: BystanderHost, server: Streamable, url: str) -> str:
    """Refused: the error of the server is the outcome, and the call is not retried."""
    data = {"elicitations": [{"mode": "url", "elicitationId": "e", "url": url, "message": "come"}]}
    server.on["tools/call"] = answers.first(1, answers.error(-32042, "visit the page first", data=data))
    outcome = await a.outcome("echo", text="come back")
    if not outcome.is_error:
        return "put"
    assert isinstance(outcome.error, RemoteError)
    assert outcome.error.remote_code == -32042
    return "refused"


async def as_a_request(a: BystanderHost, server: Streamable, url: str) -> str:
    """Refused: the server gets an error for its invalid request."""
    await server.wait_for("GET")
    await until(lambda: server._viewings)
    server.answers_heard.clear()
    count = len(server.asked("tools/call"))
    calling = asyncio.create_task(a.host.call("mcp__hostile__hold", {}))
    await until(lambda: len(server.asked("tools/call")) > count)
    params = {"mode": "url", "elicitationId": "e", "url": url, "message": "come"}
    server.push({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": params})
    await until(lambda: server.answers_heard)
    (answer,) = server.answers_heard
    calling.cancel()
    await asyncio.wait([calling])
    if "result" in answer:
        return "put"
    assert answer["error"]["code"] == -32602
    return "refused"


async def in_a_round(a: BystanderHost, server: Streamable, url: str) -> str:
    """Refused: the call ends, because an invalid request cannot be answered with an error here."""
    asked = {"method": "elicitation/create", "params": {"mode": "url", "url": url, "message": "come"}}

    def call(params: dict[str, Any]) -> dict[str, Any]:
        if "inputResponses" in params:
            return {"resultType": "complete", "content": []}
        return {"resultType": "input_required", "inputRequests": {"p": asked}}

    replace_results(server, {"tools/call": call})
    error = (await a.outcome("echo", text="x")).error
    if error is None:
        return "put"
    return "refused" if "cannot be shown to a person" in str(error) else str(error)


WAYS = {"error": (LEGACY, in_an_error), "request": (LEGACY, as_a_request), "round": (MODERN, in_a_round)}


@pytest.mark.parametrize("way", WAYS)
async def test_t28_a_hostile_url_reaches_neither_the_person_nor_an_opener_nor_the_network(
    bystander_host, home: Path, listener: Listener, openers: Callable[[], Openers], way: str
):
    revision, names_a_page = WAYS[way]
    visitor = AcceptsEverything()
    async with (
        streamable(revisions=(revision,)) as server,
        bystander_host({"url": server.url, "protocol": revision}, interaction=visitor) as a,
    ):
        watched = openers()
        for what, address in HOSTILE_ADDRESSES.items():
            assert await names_a_page(a, server, spelled(address, listener, home)) == "refused", what
            assert visitor.visited == [], what
        assert watched.calls == []
    assert listener.connections == 0
    assert not (home / "canary").exists()


@pytest.mark.parametrize("address", HOSTILE_ADDRESSES.values(), ids=list(HOSTILE_ADDRESSES))
def test_t28_a_hostile_url_becomes_no_question(address: str, listener: Listener, home: Path):
    assert url_question("x", spelled(address, listener, home), "come") is None


@pytest.mark.parametrize(
    "address",
    [
        "https://as.example/authorize?client_id=x&state=a%20b&redirect_uri=http%3A%2F%2F127.0.0.1%3A5%2F#top",
        "HTTPS://As.Example:8443/a/(b);c=d,e/~f/@g/[h]?x=*+y!",
        "https://xn--pple-43d.example/",
        "https://[2001:db8::1]:8443/",
        "http://127.0.0.1:8080/callback",
        "http://localhost/",
        "http://[::1]:9/",
        "https://as.example/" + "a" * 4000,
    ],
    ids=lambda address: address[:40],
)
def test_t28_an_ordinary_url_is_shown_unchanged(address: str):
    question = url_question("x", address, "come \x1b[2J")
    assert question is not None
    assert question.url == address
    assert "\x1b" not in question.message


# --- an approval opens nothing either: the front end opens the URL after its own question ---


@pytest.mark.parametrize("way", WAYS)
async def test_t28_even_after_a_yes_the_host_opens_and_fetches_nothing(
    bystander_host, listener: Listener, openers: Callable[[], Openers], way: str
):
    revision, names_a_page = WAYS[way]
    visitor = AcceptsEverything()
    good = f"http://127.0.0.1:{listener.port}/sign-in"
    async with (
        streamable(revisions=(revision,)) as server,
        bystander_host({"url": server.url, "protocol": revision}, interaction=visitor) as a,
    ):
        watched = openers()
        assert await names_a_page(a, server, good) == "put"
        assert [question.url for question in visitor.visited] == [good]
        assert watched.calls == []
    assert listener.connections == 0


class Reader(Terminal):
    def wait_for(self, text: bytes) -> None:
        while text not in self._output:
            assert select.select([self._master], [], [], LIMIT_SECONDS)[0], self._output
            self._output += os.read(self._master, 65536)


@pytest.mark.parametrize("answer", [b"y", b"n", b"\x03"], ids=["yes", "no", "interrupted"])
async def test_t28_at_the_terminal_a_page_is_shown_and_opened_only_after_a_yes(
    home: Path, listener: Listener, answer: bytes
):
    """Every command that could start a browser is replaced by one that records its arguments."""
    shims, canary = home / "shims", home / "canary"
    shims.mkdir()
    for name in (
        "xdg-open",
        "sensible-browser",
        "www-browser",
        "x-www-browser",
        "firefox",
        "open",
        "wslview",
    ):
        (shims / name).write_text(f'#!/bin/sh\nprintf "%s|" "$0" "$@" >> {canary}\n')
        (shims / name).chmod(0o755)
    environment = {
        "BROWSER": str(shims / "firefox"),
        "DISPLAY": ":0",
        "PATH": f"{shims}:{os.environ['PATH']}",
    }
    good = f"http://127.0.0.1:{listener.port}/sign-in"

    def person(config: str) -> str:
        with Reader("call", "mcp__x__echo", "text=hi", "--mcp-config", config, env=environment) as terminal:
            terminal.wait_for(b"y/n/c: ")
            assert not canary.exists(), "before a yes"
            terminal.type(answer)
            if answer == b"y":
                terminal.wait_for(b"d/c: ")
                terminal.type(b"d")
            return terminal.finish()

    async with streamable(revisions=(LEGACY,)) as server:
        data = {"elicitations": [{"mode": "url", "elicitationId": "e", "url": good, "message": "come"}]}
        server.on["tools/call"] = answers.first(1, answers.error(-32042, "visit first", data=data))
        config = json.dumps({"mcpServers": {"x": {"type": "http", "url": server.url}}})
        shown = plain(await asyncio.to_thread(person, config))
        assert good in shown
        assert len(server.asked("tools/call")) == (2 if answer == b"y" else 1)
    assert listener.connections == 0
    if answer == b"y":
        await until(canary.exists)
        assert canary.read_text() == f"{shims / 'firefox'}|{good}|"
    else:
        assert not canary.exists()


# --- sign-in pages ---


async def hostile_authorization_page(world: AuthWorld, url: str) -> None:
    world.server_document["authorization_endpoint"] = url


async def hostile_device_page(world: AuthWorld, url: str) -> None:
    codes = {"device_code": "d", "user_code": "c", "interval": 0.01}
    world.on["/device"] = answering({**codes, "verification_uri": url})


async def hostile_device_page_with_code(world: AuthWorld, url: str) -> None:
    good = f"{world.auth.origin}/enter"
    codes = {"device_code": "d", "user_code": "c", "interval": 0.01}
    world.on["/device"] = answering({**codes, "verification_uri": good, "verification_uri_complete": url})


PAGES = {each.__name__: each for each in (hostile_authorization_page, hostile_device_page)}
PAGES["hostile_device_page_with_code"] = hostile_device_page_with_code


@pytest.mark.requirement("AUT-1")
@pytest.mark.parametrize("way", PAGES)
async def test_t28_a_hostile_sign_in_page_reaches_neither_the_person_nor_an_opener(
    home: Path, listener: Listener, openers: Callable[[], Openers], way: str
):
    async with AuthWorld() as world, host_of(world) as host:
        await host.ready(timeout=20)
        watched = openers()
        for what, address in HOSTILE_ADDRESSES.items():
            await PAGES[way](world, spelled(address, listener, home))
            browser = Browser()
            with pytest.raises(SignInFailed) as caught:
                await host.sign_in("x", browser, on_device="device" in way)
            assert (browser.pages, browser.codes) == ([], []), what
            if "device" in way and address:
                assert caught.value.cause in (
                    "the page for the code is not a plain https URL",
                    "its authorization server gave no verification_uri",
                ), what
            elif address:
                assert caught.value.cause.startswith("authorization_endpoint"), what
        assert watched.calls == []
        assert world.token_requests == []
    assert listener.connections == 0
    assert not (home / "canary").exists()


# --- the same texts in other places ---


async def test_t28_urls_in_arguments_arrive_unchanged_and_start_nothing(
    bystander_host, home: Path, listener: Listener, openers: Callable[[], Openers], era: str
):
    async with streamable(revisions=(era,)) as server:
        entry = {"url": server.url, "protocol": era}
        async with bystander_host(entry, interaction=AcceptsEverything(), permission_mode="default") as a:
            watched = openers()
            for address in HOSTILE_ADDRESSES.values():
                said = spelled(address, listener, home)
                assert (await a.outcome("echo", text=said, raw=True)).text == said
            assert watched.calls == []
    assert listener.connections == 0
    assert not (home / "canary").exists()


async def test_t28_links_and_icons_of_a_server_are_not_fetched(
    bystander_host, home: Path, listener: Listener, openers: Callable[[], Openers], era: str
):
    place = f"http://127.0.0.1:{listener.port}"
    links = [
        {"type": "resource_link", "name": f"n{number}", "uri": spelled(address, listener, home) or "x:"}
        for number, address in enumerate(HOSTILE_ADDRESSES.values())
    ]
    content = [
        {"type": "text", "text": f"see {place}/text and ![]({place}/picture)"},
        {
            "type": "resource_link",
            "name": "here",
            "uri": f"{place}/link",
            "icons": [{"src": f"{place}/icon"}],
        },
        {"type": "resource", "resource": {"uri": f"{place}/resource", "text": "t"}},
        *links,
    ]
    result = {"resultType": "complete", "content": content}
    tool = {"name": "look", "inputSchema": {"type": "object"}, "icons": [{"src": f"{place}/tool-icon"}]}
    async with streamable(revisions=(era,)) as server:
        replace_results(
            server, {"tools/call": lambda _: result, "tools/list": lambda _: {"tools": [tool], "ttlMs": 0}}
        )
        async with bystander_host({"url": server.url, "protocol": era}) as a:
            watched = openers()
            outcome = await a.outcome("look")
            assert "\x1b" not in json.dumps(outcome.text, ensure_ascii=False)
            assert watched.calls == []
    assert listener.connections == 0
