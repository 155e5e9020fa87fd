"""T38: A secret of a server's entry is sent to that server, and appears nowhere else.

Canaries are in every field of an entry that can contain secrets: as literal values, and as variables.
Then every command is run, every kind of failure is caused, and all output is searched: stdout and
stderr, all files, command lines of all processes, and what other servers received."""

import asyncio
import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dragoman import DragomanError, Host
from dragoman.testing import ScriptedUser
from tests.e2e import command, forked
from tests.e2e.command import DRAGOMAN
from tests.e2e.person import Person
from tests.servers import stdio_server
from tests.servers.web import answers, site, streamable
from tests.servers.web.given_answers import error, replace_results
from tests.torture.projects import COMMANDS, invocations, user

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

CANARIES = {
    place: f"cAnary-{place}-9f3b7c21"
    for place in (
        "envliteral",
        "envvariable",
        "headerliteral",
        "headervariable",
        "query",
        "queryvariable",
        "userinfo",
    )
}
VARIABLES = {
    "CANARY_ENV": CANARIES["envvariable"],
    "CANARY_HEADER": CANARIES["headervariable"],
    "CANARY_QUERY": CANARIES["queryvariable"],
}
SERVER_TOOLS = ("result", "large", "structured", "error", "failure", "progress", "log", "processes", "crash")


def spellings(secret: str) -> Iterator[str]:
    yield secret
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode().rstrip("=")[:-2]


def canaries_in(text: str) -> list[str]:
    """The fields whose canary is in the text, in any encoding."""
    return [place for place, secret in CANARIES.items() if any(each in text for each in spellings(secret))]


def server_that_returns_secrets() -> dict[str, Any]:
    env = {"SERVICE_TOKEN": CANARIES["envliteral"], "API_KEY": "${CANARY_ENV}"}
    return stdio_server("reveals_environment.py", env=env)


def remote(url: str) -> dict[str, Any]:
    query = f"api_key={CANARIES['query']}&token=${{CANARY_QUERY}}"
    headers = {"Authorization": f"Bearer {CANARIES['headerliteral']}", "X-Api-Key": "${CANARY_HEADER}"}
    return {"type": "http", "url": f"{url}?{query}", "headers": headers}


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in VARIABLES.items():
        monkeypatch.setenv(name, secret)


def run(*words: str, **options: Any) -> str:
    """All output of the command."""
    done = forked.run(*words, **options)
    return done.stdout + done.stderr


def canaries_in_files(home: Path, own: Path) -> dict[str, list[str]]:
    """Files other than the person's own that contain a canary."""
    found = {}
    for path in home.rglob("*"):
        if path.is_file() and path != own:
            places = canaries_in(path.read_bytes().decode("latin-1"))
            if places:
                found[str(path.relative_to(home))] = places
    return found


def test_t38_the_canary_search_finds_every_encoding():
    for place, secret in CANARIES.items():
        assert canaries_in(f"x{secret}x") == [place]
        assert canaries_in(json.dumps({"x": secret})) == [place]
        assert canaries_in(base64.b64encode(secret.encode()).decode()) == [place]


async def test_t38_the_server_itself_receives_its_secrets():
    async with streamable() as server:
        async with Host({"a": remote(server.url)}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            assert host.servers["a"].status == "connected", host.servers["a"].reason
        sent = "".join(f"{ask.path} {dict(ask.headers)}" for ask in server.asks)
    assert {"headerliteral", "headervariable"} <= set(canaries_in(sent))


# --- the command line ---

WRITES_FOR_OTHERS = ("mcp export",)
"""A person who exports the complete entry for another program gets it unmasked."""


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in WRITES_FOR_OTHERS])
async def test_t38_no_command_prints_a_secret(home: Path, command: str):
    async with streamable() as server:
        own = user(home, {"mcpServers": {"near": server_that_returns_secrets(), "far": remote(server.url)}})
        for words in invocations(command, ["near", "far"]):
            if words[-1] in ("--help", "--follow"):
                continue
            output = await asyncio.to_thread(run, *words)
            assert canaries_in(output) == [], f"{words}: {output}"
            assert "Traceback" not in output
    assert canaries_in_files(home, own) == {}


RETURNED = [
    *(pytest.param(name, how) for name in ("result", "large", "failure") for how in ("", "--json")),
    *(pytest.param(name, "") for name in ("structured", "progress", "log", "processes", "crash")),
    pytest.param("structured", "--json"),
    *(pytest.param("error", how) for how in ("", "--json")),
]


@pytest.mark.parametrize(("name", "how"), RETURNED)
def test_t38_no_call_prints_a_secret_that_the_server_returns(home: Path, name: str, how: str):
    own = user(home, {"mcpServers": {"near": server_that_returns_secrets()}})
    output = run("call", f"mcp__near__{name}", *filter(None, [how]))
    assert canaries_in(output) == [], output[:2000]
    assert "[secret]" in output or name in ("processes", "progress", "log", "crash"), output[:500]
    for words in (("logs", "--audit"), ("logs", "--json"), ("permissions", "explain", f"mcp__near__{name}")):
        output = run(*words)
        assert f"mcp__near__{name}" in output
        assert canaries_in(output) == []
    assert canaries_in_files(home, own) == {}


@pytest.mark.parametrize("name", ["result", "log", "crash", "progress"])
def test_t38_no_secret_is_printed_on_a_terminal(home: Path, name: str):
    user(home, {"mcpServers": {"near": server_that_returns_secrets()}, "permissions": {"ask": ["mcp__near"]}})
    with Person("call", f"mcp__near__{name}") as person:
        person.answers("y/n", "y")
        output = person.finish()
    assert canaries_in(output) == [], output


@pytest.mark.parametrize(
    ("says", "how"),
    [
        pytest.param("text", ""),
        pytest.param("text", "--json"),
        pytest.param("structured", "--json"),
        pytest.param("error", ""),
    ],
)
async def test_t38_no_secret_is_printed_that_a_remote_server_returns(home: Path, says: str, how: str):
    async with streamable() as server:

        def answer(_: Any) -> Any:
            sent = json.dumps({"url": str(server.asks[-1].path), **dict(server.asks[-1].headers)})
            if says == "error":
                return error(-32000, sent, {"sent": sent})
            structured = {"structuredContent": {"sent": sent}} if says == "structured" else {}
            return {"content": [{"type": "text", "text": sent}], **structured}

        user(home, {"mcpServers": {"far": remote(server.url)}})
        replace_results(server, {"tools/call": answer})
        output = await asyncio.to_thread(run, "call", "mcp__far__echo", *filter(None, [how]))
        assert canaries_in(output) == [], output
        assert "[secret]" in output


@pytest.mark.parametrize(
    "broken",
    [
        "nobody there",
        "a name nobody has",
        "not allowed",
        "nonsense",
        "a redirect",
        "not found",
    ],
)
async def test_t38_no_error_contains_a_secret(home: Path, broken: str):
    target = f"http://127.0.0.1:9/{CANARIES['query']}"
    answer = {
        "not allowed": answers.status(401, CANARIES["headerliteral"]),
        "not found": answers.status(404, CANARIES["query"]),
        "nonsense": answers.status(200, "{" + CANARIES["headerliteral"]),
        "a redirect": answers.redirect(302, target),
    }.get(broken, answers.status(500, ""))
    async with site(answer) as server:
        url = {
            "nobody there": "http://127.0.0.1:9/mcp",
            "a name nobody has": "http://nobody.invalid/mcp",
        }.get(broken, f"{server.origin}/mcp")
        user(home, {"mcpServers": {"far": remote(url)}})
        for words in (("tools",), ("tools", "--json"), ("mcp", "list"), ("call", "mcp__far__echo")):
            output = await asyncio.to_thread(run, *words)
            assert canaries_in(output) == [], f"{words}: {output}"


# --- other processes ---


def test_t38_no_command_line_of_any_process_contains_a_secret(home: Path):
    user(home, {"mcpServers": {"near": server_that_returns_secrets()}})
    output = command.run("call", "mcp__near__processes").stdout

    assert "reveals_environment.py" in output, "it looked at itself"
    assert str(DRAGOMAN) in output
    assert canaries_in(output) == []


def test_t38_no_server_receives_the_secrets_of_another(home: Path):
    user(
        home,
        {
            "mcpServers": {
                "near": server_that_returns_secrets(),
                "other": stdio_server("reveals_environment.py"),
            }
        },
    )
    output = run("call", "mcp__other__result", env={**os.environ})

    assert '"PATH"' in output, "it told its environment"
    assert canaries_in(output) == []


# --- programs ---


QUIET = {"DRAGOMAN_RECONNECT_ATTEMPTS": 0}


@pytest.mark.parametrize(
    "name",
    [
        *("result", "large", "failure", "processes", "progress", "log", "crash"),
        pytest.param("structured"),
        pytest.param("error"),
    ],
)
async def test_t38_no_outcome_error_question_or_configuration_contains_a_secret(home: Path, name: str):
    person = ScriptedUser(True)
    async with Host(
        {"near": server_that_returns_secrets()}, interaction=person, audit=True, settings=QUIET
    ) as host:
        await host.ready(timeout=20)
        seen = [repr(host.configuration), repr(host.configuration.servers)]
        try:
            outcome = await host.call(f"mcp__near__{name}", {})
            seen.append(f"{outcome!r} {outcome.text} {outcome.structured!r} {outcome.saved!r}")
        except DragomanError as failure:
            seen.append(f"{failure!r} {failure} {failure.hint} {vars(failure)}")
    seen.extend(repr(question) for question in person.asked)

    assert [text[:300] for text in seen if canaries_in(text)] == []
    assert canaries_in_files(home, home / "none") == {}


@pytest.mark.parametrize("kind", ["ServerStatus", "ServerLogged", "CallProgressed"])
async def test_t38_no_event_and_no_view_contains_a_secret(kind: str):
    seen: list[tuple[str, str]] = []

    async def listen(events: Any) -> None:
        async for event in events:
            seen.append((type(event).__name__, repr(event)))

    async with Host(
        {"near": server_that_returns_secrets()}, permission_mode="bypassPermissions", settings=QUIET
    ) as host:
        listening = asyncio.create_task(listen(host.events()))
        await host.ready(timeout=20)
        for name in ("progress", "log"):
            await host.call(f"mcp__near__{name}", {})
        seen.append(("ServerStatus", repr(host.servers["near"])))
    await listening

    assert any(found == kind for found, _ in seen), "there was something to look at"
    assert [text[:300] for found, text in seen if found == kind and canaries_in(text)] == []


@pytest.mark.parametrize("words", [("tools",), ("tools", "--json"), ("call", "mcp__near__x")], ids=" ".join)
def test_t38_no_stderr_shown_of_a_failed_server_contains_a_secret(home: Path, words: tuple[str, ...]):
    entry = server_that_returns_secrets()
    user(home, {"mcpServers": {"near": {**entry, "args": [*entry["args"], "dies"]}}})
    output = run(*words)

    assert "starting with" in output
    assert canaries_in(output) == []
