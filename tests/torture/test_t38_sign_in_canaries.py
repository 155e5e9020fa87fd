"""T38: Sign-in: tokens, client secrets, codes, verifiers and states are in no output, log, event or file.

The only exceptions are the secret store, and the state in the URL of the page that a person opens."""

import asyncio
import base64
import logging
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web

from dragoman import DragomanError
from tests.servers.web import Ask
from tests.servers.web.auth_world import SECRET, AuthWorld, Browser, answering
from tests.torture.projects import COMMANDS, invocations, user
from tests.torture.signed_in import credentials_of, host_of, sign_in_before
from tests.torture.test_t38_secret_canaries import run

pytestmark = [pytest.mark.slow, pytest.mark.requirement("AUT-11")]

MARK = "cAnary-"
ENCODED = base64.b64encode(MARK.encode()).decode()[:-2]


def holds_canary(text: str) -> bool:
    return MARK in text or ENCODED in text


def files_with_canaries(home: Path, *, besides: Path | None = None) -> set[str]:
    return {
        path.suffix
        for path in home.rglob("*")
        if path.is_file() and path != besides and holds_canary(path.read_bytes().decode("latin-1"))
    }


def sent_back(ask: Ask) -> web.StreamResponse:
    """A server that returns what it received, in every kind of message."""
    text = f"you sent {dict(ask.headers)} and {ask.headers.get('Authorization')}"
    content = [{"type": "text", "text": text}]
    result = {"resultType": "complete", "content": content, "structuredContent": {"a": text}}
    return web.json_response({"jsonrpc": "2.0", "id": ask.id, "result": result})


async def repeats(ask: Ask) -> web.StreamResponse:
    return sent_back(ask)


async def repeats_as_error(ask: Ask) -> web.StreamResponse:
    error = {"code": -32000, "message": f"bad {ask.headers.get('Authorization')}", "data": dict(ask.headers)}
    return web.json_response({"jsonrpc": "2.0", "id": ask.id, "error": error})


async def repeats_as_status(ask: Ask) -> web.StreamResponse:
    return web.Response(status=500, text=f"bad {ask.headers.get('Authorization')}")


WAITS_FOR_A_PERSON = ("mcp login",)
WRITES_FOR_OTHERS = ("mcp export",)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in WAITS_FOR_A_PERSON])
async def test_t38_no_command_prints_a_token(home: Path, command: str):
    async with AuthWorld() as world:
        world.mcp.on["tools/call"] = repeats
        own = user(home, {"mcpServers": {"x": world.entry(clientId="me", clientSecret="${CANARY_SECRET}")}})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("CANARY_SECRET", SECRET)
            for words in invocations(command, ["x"]):
                if words[-1] in ("--help", "--follow"):
                    continue
                sign_in_before(world, client=credentials_client())
                output = await asyncio.to_thread(run, *words)
                if command not in WRITES_FOR_OTHERS:
                    assert not holds_canary(output), f"{words}: {output}"
                assert "Traceback" not in output
    assert files_with_canaries(home, besides=own) <= {".secret"}


def credentials_client() -> Any:
    from dragoman.auth.registration import ConfiguredClient

    return ConfiguredClient("me", SECRET)


@pytest.mark.parametrize("options", [(), ("--json",), ("--no-browser",), ("--device",)], ids=str)
async def test_t38_a_sign_in_prints_no_secret(home: Path, options: tuple[str, ...]):
    async with AuthWorld() as world:
        world.on["/device"] = answering(
            {
                "device_code": "cAnary-device",
                "user_code": "ABCD",
                "verification_uri": f"{world.auth.origin}/enter",
                "interval": 0.1,
            }
        )
        world.on["/token"] = answering({"error": "access_denied", "error_description": "no"}, 400)
        user(home, {"mcpServers": {"x": world.entry()}})
        sign_in_before(world)
        world.expire_tokens()
        words = ("mcp", "login", "x", "--timeout", "1", *options)
        output = await asyncio.to_thread(run, *words)
        assert not holds_canary(output), output
        assert "Traceback" not in output
        verifiers = [form["code_verifier"] for form in world.token_requests if "code_verifier" in form]
        assert not [each for each in verifiers if each in output]
    assert files_with_canaries(home) <= {".secret"}


async def test_t38_no_log_event_view_or_error_contains_a_secret(home: Path, caplog: pytest.LogCaptureFixture):
    """Sign-in, calls, a refresh, a refresh that fails, and a sign-out, at the most verbose log level."""
    caplog.set_level(logging.DEBUG)
    asyncio.get_running_loop().set_debug(True)
    seen: list[str] = []

    async def listen(events: Any) -> None:
        async for event in events:
            seen.append(repr(event))

    async with AuthWorld() as world:
        browser = Browser(confirms=True)
        async with host_of(world, clientId="me", clientSecret=SECRET) as host:
            listening = asyncio.create_task(listen(host.events()))
            await host.ready(timeout=20)
            await host.sign_in("x", browser)
            for answer in (repeats, repeats_as_error, repeats_as_status):
                world.mcp.on["tools/call"] = answer
                for raw in (False, True):
                    try:
                        outcome = await host.call("mcp__x__echo", {"text": "x"}, raw=raw)
                        seen.append(f"{outcome!r} {outcome.text} {outcome.error} {outcome.structured!r}")
                    except DragomanError as error:
                        seen.append(f"{error!r} {error} {error.hint} {vars(error)}")
            del world.mcp.on["tools/call"]
            world.expire_tokens()
            await host.call("mcp__x__echo", {"text": "x"})
            world.expire_tokens()
            world.on["/token"] = answering({"error": "invalid_grant"}, 400)
            await host.reconnect("x")
            seen += [repr(host.servers["x"]), repr(await host.sign_in_state("x")), repr(host)]
            del world.on["/token"]
            later = Browser(confirms=True)
            await host.sign_in("x", later)
            seen.append(repr(await host.sign_out("x")))
        await listening
        verifiers = [form["code_verifier"] for form in world.token_requests if "code_verifier" in form]
        states = [parse_qs(urlsplit(page).query)["state"][0] for page in browser.pages + later.pages]
        assert (len(verifiers), len(states)) == (2, 2)
    seen += [f"{each.getMessage()} {each.exc_text}" for each in caplog.records]
    secrets = [*verifiers, *states, SECRET]
    assert [text[:300] for text in seen if holds_canary(text) or any(each in text for each in secrets)] == []
    assert files_with_canaries(home) <= {".secret"}


async def test_t38_every_secret_is_registered_for_redaction_before_it_is_used():
    learned: list[str] = []
    async with AuthWorld() as world:
        account = sign_in_before(world)
        credentials = credentials_of(world, learned)
        await credentials.headers()
        assert set(account.secrets) <= set(learned)
