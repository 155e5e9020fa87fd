"""A program whose calls a person is asked about, in the terminal: python examples/asking.py"""

import asyncio

from dragoman import Host
from dragoman.cli.asking import Terminal
from dragoman.config.scopes import Sources
from dragoman.testing import InMemoryServer


def archive() -> InMemoryServer:
    """A server with something to lose."""
    server = InMemoryServer("archive")
    letter = {"letter": {"type": "string"}, "note": {"type": "string"}}
    server.add_tool(
        "read",
        lambda arguments, context: f"{arguments['letter']}: your obedient servant",
        description="Reads a letter.",
        properties=letter,
        annotations={"readOnlyHint": True, "openWorldHint": False},
    )
    server.add_tool(
        "burn",
        lambda arguments, context: f"{arguments['letter']} is ashes",
        description="Burns a letter.",
        properties=letter,
        title="Burn a letter",
        annotations={"destructiveHint": True, "openWorldHint": False},
    )
    return server


async def main() -> None:
    # What only reads is made; the rest is asked.
    rules = {"allow": ["mcp__archive(readOnly)"]}
    person = Terminal(Sources.here())
    async with Host.configured(servers={"archive": archive()}, rules=rules, interaction=person) as host:
        await host.ready()
        print((await host.call("mcp__archive__read", {"letter": "Vienna, 1683"})).text)
        note = "The court must not see this. It names the envoy, the price and the hour."
        print((await host.call("mcp__archive__burn", {"letter": "Vienna, 1683", "note": note})).text)


asyncio.run(main())
