"""Callers of the gateway sign in at a real authorization server, one of them with a real browser."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import ImageBlock
from tests.callers_site import begin, names
from tests.gateway import BOB, Client, gateway_of
from tests.integration.waiting import until
from tests.interop.oauth.parts import AuthorizationServer, Browser, Protected
from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.requirement("GWY-3")


async def is_signed_in(client: Client) -> bool:
    return "tracker__authenticate" not in await names(client)


@pytest.mark.needs("oidc-provider")
async def test_two_callers_have_two_accounts(authorization: AuthorizationServer) -> None:
    async with (
        Protected(authorization) as server,
        gateway_of({"tracker": server.entry}, own=["tracker"]) as running,
        Client(running.url) as ada,
        Client(running.url, BOB) as bob,
    ):
        for client, login in ((ada, "anna"), (bob, "bert")):
            async with Browser() as browser:
                page = await browser.walk(await begin(client), login=login)
                assert "You are signed in" in page
                assert browser.forms == 3  # the gateway's page, the sign-in, the consent
            await until(lambda client=client: is_signed_in(client))
        owners = [(await authorization.introspect(token))["sub"] for token in server.tokens]
        assert owners == ["anna", "bert"]
        await authorization.expire()
        for client in (bob, ada):
            called = await client.modern("tools/call", {"name": "tracker__echo", "arguments": {"text": "x"}})
            assert called.last["result"]["content"][0]["text"]
        renewed = [(await authorization.introspect(token))["sub"] for token in server.tokens[2:]]
        assert renewed == ["bert", "anna"]


@pytest.mark.slow
@pytest.mark.needs("oidc-provider", "playwright")
async def test_a_person_signs_in_for_a_caller_with_chromium(
    part: Part, authorization: AuthorizationServer, tmp_path: Path
) -> None:
    entry = {**part("playwright", "--caps", "devtools"), "cwd": str(tmp_path)}
    async with (
        Protected(authorization) as server,
        visit(entry, "2025-11-25") as browser,
        gateway_of({"tracker": server.entry}, own=["tracker"]) as running,
        Client(running.url) as ada,
    ):
        press = "() => { document.querySelector('button, [type=submit]').click(); }"
        await browser.call("browser_navigate", url=await begin(ada))
        page = await browser.call("browser_snapshot")
        assert 'heading "Sign in to tracker"' in page.text
        assert 'button "Continue to the sign-in"' in page.text
        picture = await browser.call("browser_take_screenshot", scale="css")
        (image,) = [block for block in picture.content if isinstance(block, ImageBlock)]
        (tmp_path / "sign-in.png").write_bytes(base64.b64decode(image.data))
        await browser.call("browser_evaluate", function=press)
        await browser.call("browser_wait_for", time=0.3)
        await browser.call(
            "browser_evaluate",
            function="() => { document.querySelector('[name=login]').value = 'anna';"
            " document.querySelector('[name=password]').value = 'any'; }",
        )
        for _ in range(2):  # the sign-in, then the consent
            await browser.call("browser_evaluate", function=press)
            await browser.call("browser_wait_for", time=0.3)
        page = await browser.call("browser_snapshot")
        assert 'heading "You are signed in"' in page.text
        await until(lambda: is_signed_in(ada))
