"""T334: a deny rule that a program or a person adds to a running host ends subscriptions, as a rule of a
file does."""

import pytest

from dragoman import Host
from tests.servers.library import Library

pytestmark = pytest.mark.requirement("PRM-1")
BOOK = "book://divan"


@pytest.mark.parametrize("rule", ["mcp__lib", "*", "read_mcp_resource(uri=book://*)"])
async def test_t334_no_change_is_reported_after_the_deny_rule(rule: str):
    library = Library()
    async with Host({"lib": library}) as host:
        await host.ready()
        async with host.resources.subscribed("lib", BOOK) as updates:
            library.touch(BOOK)
            assert (await anext(updates)).uri == BOOK
            host.add_rule("deny", rule)
            library.touch(BOOK)
            with pytest.raises(StopAsyncIteration):
                await anext(updates)
