"""The pages of a sign-in in a real browser."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, ImageBlock
from tests.interop.oauth.parts import AuthorizationServer, Protected
from tests.interop.visit import Visit, visit

Part = Callable[..., dict[str, Any]]


class Chromium:
    """A `SignInScreen`: a person in front of Chromium, which an MCP server drives."""

    def __init__(self, browser: Visit) -> None:
        self._browser = browser
        self.tasks: list[asyncio.Task[None]] = []

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        self.tasks.append(asyncio.create_task(self.walk(url)))
        await asyncio.shield(self.tasks[-1])

    async def walk(self, url: str) -> None:
        await self._browser.call("browser_navigate", url=url)
        await self._browser.call(
            "browser_evaluate",
            function="() => { document.querySelector('[name=login]').value = 'anna';"
            " document.querySelector('[name=password]').value = 'any'; }",
        )
        for _ in range(2):  # the sign-in, then the consent
            await self._browser.call(
                "browser_evaluate", function="() => { document.querySelector('[type=submit]').click(); }"
            )
            await self._browser.call("browser_wait_for", time=0.3)

    async def show_code(self, url: str, code: str, complete_url: str | None) -> None:
        raise AssertionError("no device")

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        return False

    def notice(self, text: str) -> None:
        return


@pytest.mark.slow
@pytest.mark.requirement("AUT-1")
@pytest.mark.needs("oidc-provider", "playwright")
async def test_a_person_signs_in_with_chromium(
    part: Part, authorization: AuthorizationServer, tmp_path: Path
) -> None:
    entry = {**part("playwright", "--caps", "devtools"), "cwd": str(tmp_path)}
    async with (
        Protected(authorization) as server,
        visit(entry, "2025-11-25") as browser,
        Host({"s": server.entry}, permission_mode="bypassPermissions") as host,
    ):
        await host.ready(timeout=30)
        screen = Chromium(browser)
        view = await host.sign_in("s", screen, timeout=30)
        assert view.status == "connected"
        await screen.tasks[0]
        page = await browser.call("browser_snapshot")
        assert 'heading "You are signed in"' in page.text
        picture = await browser.call("browser_take_screenshot", scale="css")
        (image,) = [block for block in picture.content if isinstance(block, ImageBlock)]
        (tmp_path / "signed-in.png").write_bytes(base64.b64decode(image.data))
