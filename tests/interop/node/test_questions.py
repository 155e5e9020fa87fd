"""The reference server from npm asks: forms, pages, the model, roots; over every transport it has."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.cli import exit_codes
from dragoman.interaction import SamplingAnswer, SamplingRequest
from dragoman.testing import ScriptedUser
from tests.e2e.command import config
from tests.e2e.fake_provider import FakeProvider
from tests.e2e.forked import run
from tests.e2e.person import Person
from tests.integration.waiting import until
from tests.interop.remote import RECIPES, Remote

Part = Callable[..., dict[str, Any]]
TRANSPORTS = ["stdio", "everything-http", "everything-sse"]

pytestmark = pytest.mark.needs("server-everything")
over_every_transport = pytest.mark.parametrize("transport", TRANSPORTS)
DEFAULTS = {
    "firstLine": "It was a dark and stormy night.",
    "integer": 42,
    "number": 3.14,
    "untitledSingleSelectEnum": "Monica",
    "untitledMultipleSelectEnum": ["Guitar"],
    "titledSingleSelectEnum": "hero-1",
    "titledMultipleSelectEnum": ["fish-1"],
    "legacyTitledEnum": "pet-1",
}
FORM, PAGE, SAMPLE, ROOTS = (
    f"mcp__e__{name}"
    for name in (
        "trigger-elicitation-request",
        "trigger-url-elicitation",
        "trigger-sampling-request",
        "get-roots-list",
    )
)


class Model:
    async def sample(self, request: SamplingRequest) -> SamplingAnswer:
        text = f"{request.messages[0].content[0]['text']} ({request.max_tokens})"
        return SamplingAnswer(content=({"type": "text", "text": text},), model="m-1")


@contextlib.asynccontextmanager
async def entry_of(part: Part, transport: str) -> AsyncGenerator[dict[str, Any]]:
    more = {"protocol": "2025-11-25", "roots": True, "sampling": "allow"}
    if transport == "stdio":
        yield {**part("server-everything", "stdio"), **more}
    else:
        async with Remote(RECIPES[transport], part) as server:
            yield {**server.entry, **more}


@contextlib.asynccontextmanager
async def host_of(part: Part, transport: str, user: Any, **more: Any) -> AsyncGenerator[Host]:
    async with (
        entry_of(part, transport) as entry,
        Host({"e": entry}, interaction=user, permission_mode="bypassPermissions", **more) as host,
    ):
        await host.ready(timeout=30)
        yield host


async def called(host: Host, tool: str, **arguments: Any) -> str:
    # These tools are registered once the server has seen what the client offers.
    await until(lambda: any(each.name == tool for each in host.tools()))
    outcome = await host.call(tool, arguments, timeout_seconds=30)
    assert not outcome.is_error, outcome.text
    return outcome.text


@over_every_transport
@pytest.mark.requirement("ASK-1")
async def test_a_form_of_every_kind_of_field(part: Part, transport: str) -> None:
    user = ScriptedUser(forms=[{"name": "Ada", "email": "a@b.example"}, "decline", "cancel"])
    async with host_of(part, transport, user) as host:
        said = await called(host, FORM)
        raw = json.loads(said.partition("Raw result:")[2])
        content = {"name": "Ada", "email": "a@b.example", **DEFAULTS}
        assert raw == {"action": "accept", "content": content}
        assert "declined" in await called(host, FORM)
        assert "cancelled" in await called(host, FORM)
    assert [field.kind for field in user.forms[0].fields][:3] == ["text", "boolean", "text"]
    assert [call.name for call in user.forms[0].calls] == [FORM]


@over_every_transport
@pytest.mark.requirement("ASK-2")
@pytest.mark.parametrize("error_path", [False, True], ids=["by a request", "by the error"])
async def test_a_page_to_open_first(part: Part, transport: str, error_path: bool) -> None:
    user = ScriptedUser(urls=["accept"])
    async with host_of(part, transport, user) as host:
        page = {"url": "https://pay.example/1", "elicitationId": "e-7", "errorPath": error_path}
        said = await called(host, PAGE, **page)
    assert "accept" in said
    asked = [question.url for question in user.urls]
    # By the error it first wants a page of its own; the call that is made again asks for the given one.
    assert asked == ["https://modelcontextprotocol.io"] * error_path + ["https://pay.example/1"]
    assert user.urls[-1].elicitation_id == "e-7"


@over_every_transport
@pytest.mark.requirement("ASK-4")
async def test_an_answer_of_the_programs_model(part: Part, transport: str) -> None:
    async with host_of(part, transport, None, sampler=Model()) as host:
        said = await called(host, SAMPLE, prompt="Hi", maxTokens=77)
    assert "Resource trigger-sampling-request context: Hi (77)" in said
    assert '"model": "m-1"' in said


@over_every_transport
@pytest.mark.requirement("ASK-5")
async def test_the_roots_and_their_changes(part: Part, transport: str, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with host_of(part, transport, None) as host:
        assert Path.cwd().as_uri() in await called(host, ROOTS)
        host.set_roots([other])

        async def is_known() -> bool:
            return other.as_uri() in await called(host, ROOTS)

        await until(is_known)


# At the command line: the question and its answer do not depend on the transport, so each has another.


@pytest.mark.slow
@pytest.mark.requirement("ASK-1")
@pytest.mark.parametrize("transport", ["stdio"])
async def test_a_form_at_the_command_line(part: Part, transport: str, home: Path) -> None:
    def fill_in(entry: dict[str, Any]) -> tuple[int, str]:
        with Person("call", FORM, "{}", "--mcp-config", config(e=entry)) as person:
            person.sees("String (required): ")
            person.type(b"Ada\n")
            for _ in range(12):
                person.sees(": ")
                person.type(b"\n")
            person.answers("y/e/n/c", "y")
            return person.ends()

    async with entry_of(part, transport) as entry:
        code, shown = await asyncio.to_thread(fill_in, entry)
    assert code == exit_codes.OK, shown
    raw = json.loads(shown.partition("Raw result:")[2])
    assert raw == {"action": "accept", "content": {"name": "Ada", **DEFAULTS}}


@pytest.mark.slow
@pytest.mark.requirement("ASK-4")
@pytest.mark.parametrize("transport", ["everything-http"])
async def test_an_answer_of_a_model_at_the_command_line(part: Part, transport: str) -> None:
    with FakeProvider(["They say hi."]) as provider:
        async with entry_of(part, transport) as entry:
            words = ("call", SAMPLE, "prompt=Hi", "--mcp-config", config(e=entry))
            model = ("--model", "openai-chat:m", "--base-url", f"{provider.url}/v1")
            done = await asyncio.to_thread(run, *words, *model)
    assert done.returncode == exit_codes.OK, done.stderr
    assert '"text": "They say hi."' in done.stdout
    (request,) = provider.requests
    assert request["messages"][-1]["content"] == "Resource trigger-sampling-request context: Hi"


@pytest.mark.slow
@pytest.mark.requirement("ASK-2", "ASK-5")
@pytest.mark.parametrize("transport", ["everything-sse"])
async def test_a_page_and_roots_at_the_command_line(part: Part, transport: str, home: Path) -> None:
    def visit(entry: dict[str, Any]) -> tuple[int, str]:
        page = json.dumps({"url": "https://pay.example/1", "errorPath": True})
        with Person("call", PAGE, page, "--mcp-config", config(e=entry)) as person:
            person.answers("y/n/c", "y")  # by the error
            person.answers("d/c", "d")
            assert "https://pay.example/1" in person.answers("y/n/c", "y")  # by a request
            return person.ends()

    async with entry_of(part, transport) as entry:
        code, shown = await asyncio.to_thread(visit, entry)
        assert (code, "accept" in shown) == (exit_codes.OK, True), shown
        words = ("call", ROOTS, "--mcp-config", config(e=entry), "--add-dir", home)
        listed = await asyncio.to_thread(run, *words)
    assert home.as_uri() in listed.stdout, listed.stderr
