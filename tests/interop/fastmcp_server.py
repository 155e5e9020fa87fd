"""A server made with FastMCP, over HTTP: `python fastmcp_server.py PORT`, in the interop environment."""

import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp-peer", instructions="Made to be called.")


@server.tool
def echo(message: str) -> str:
    """Says it again."""
    return message


@server.tool
async def count(to: int, context: Context) -> int:
    """Counts, and tells how far it is."""
    for number in range(1, to + 1):
        await context.report_progress(number, to)
    return to


if __name__ == "__main__":
    server.run(
        transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
    )
