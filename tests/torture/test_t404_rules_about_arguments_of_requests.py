"""T404: a deny or ask rule about arguments, for a server or one of its prompts, also applies to prompt and
resource requests."""

from collections.abc import Awaitable, Callable

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from dragoman.testing import ScriptedUser
from tests.servers.library import LEGACY, Library

pytestmark = pytest.mark.requirement("PRM-1")
BOOK, PROMPT = "book://divan", "mcp__lib__review"


async def read(host: Host) -> None:
    await host.resources.read("lib", BOOK)


async def call_read(host: Host) -> None:
    arguments = {"server": "lib", "uri": BOOK}
    (await host.toolbox().call("read_mcp_resource", arguments)).raise_for_error()


async def fill_in(host: Host) -> None:
    await host.prompts.get(PROMPT, {"book": "divan"})


CASES: list[tuple[Callable[[Host], Awaitable[None]], str]] = [
    (read, "mcp__lib(uri=book://*)"),
    (call_read, "mcp__lib__*(uri=BOOK://divan)"),
    (call_read, "mcp__*(uri!=note://*)"),
    (fill_in, "mcp__lib__review(book=divan)"),
    (fill_in, "mcp__lib(book=Div*)"),
    (fill_in, "mcp__lib(arguments.book=divan)"),
]


@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(("way", "rule"), CASES)
async def test_t404_a_rule_about_arguments_applies_to_requests(
    way: Callable[[Host], Awaitable[None]], rule: str, kind: str
):
    user = ScriptedUser()
    async with Host(
        {"lib": Library(revisions=LEGACY)},
        rules={kind: [rule]},
        permission_mode="bypassPermissions",
        interaction=user,
    ) as host:
        await host.ready()
        with pytest.raises(PermissionRefused) as refused:
            await way(host)
    assert len(user.asked) == (kind == "ask")
    reason = user.asked[0].reason if user.asked else str(refused.value)
    assert f"{kind} rule {rule} of dynamic (code)" in reason


@pytest.mark.parametrize("rule", ["mcp__lib(uri=note://*)", "mcp__lib__review(uri=*)", "mcp__lib(book=*)"])
async def test_t404_other_requests_are_sent(rule: str):
    async with Host({"lib": Library(revisions=LEGACY)}, rules={"deny": [rule]}) as host:
        await host.ready()
        await read(host)
