"""T118: a deny rule that is added while a host runs ends subscriptions and hides prompts that are already
known."""

import asyncio
from pathlib import Path

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from tests.servers.library import Library
from tests.torture import projects

pytestmark = pytest.mark.requirement("PRM-1")

BOOK = "book://divan"
LONG = "l" * 61
"""With it, names of tools and prompts are cut, and do not begin with the whole name of the server."""


def deny(home: Path, rule: str) -> None:
    projects.managed(home, {"permissions": {"deny": [rule]}})


@pytest.mark.parametrize("rule", ["mcp__lib", "read_mcp_resource", "read_mcp_resource(uri=book://divan)"])
@pytest.mark.parametrize("revisions", [("2026-07-28",), ("2025-11-25",)], ids=["modern", "legacy"])
async def test_t118_a_new_deny_rule_ends_a_subscription(home: Path, rule: str, revisions: tuple[str, ...]):
    library = Library(revisions=revisions)
    async with Host.configured(servers={"lib": library, "other": Library()}) as host:
        await host.ready()
        async with (
            host.resources.subscribed("lib", BOOK) as updates,
            host.resources.subscribed("other", "book://atlas") as others,
        ):
            deny(home, rule)
            await host.reload()
            library.touch(BOOK)
            with pytest.raises(StopAsyncIteration):
                await anext(updates)
            if rule != "read_mcp_resource":
                next_one = asyncio.ensure_future(anext(others))
                await asyncio.sleep(0)
                assert not next_one.done()
                next_one.cancel()
        if revisions == ("2025-11-25",):
            assert library.heard.count("resources/unsubscribe") == 1


async def test_t118_a_known_prompt_with_a_shortened_name_is_hidden_by_a_new_deny_rule(home: Path):
    library = Library()
    async with Host.configured(servers={LONG: library}) as host:
        await host.ready()
        (name, *_) = [prompt.name for prompt in (await host.prompts.list()).items]
        assert not name.startswith(f"mcp__{LONG}")
        deny(home, f"mcp__{LONG}")
        await host.reload()
        for way in (host.prompts.find, host.prompts.parse, host.prompts.get):
            with pytest.raises(PermissionRefused):
                await way(name)
