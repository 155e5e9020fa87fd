"""A gateway in front of one server, for clients that cannot send a token: all of this machine are admitted.

Run with the server's entry as JSON; prints the port, and ends with its standard input.
"""

import asyncio
import json
import sys
from collections.abc import Collection

from dragoman.gateway.access import LOCAL, KnownCaller
from dragoman.gateway.app import HttpOptions, serve_http
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.questions import ClientQuestions
from dragoman.host import Host


async def anyone(authorization: Collection[str]) -> KnownCaller:
    return LOCAL


async def main() -> None:
    questions = ClientQuestions()
    servers = {"fronted": json.loads(sys.argv[1])}
    async with Host(
        servers, interaction=questions, sampler=questions, permission_mode="bypassPermissions"
    ) as host:
        await host.ready()
        gateway = Gateway(host, questions, plain_names=True)
        reporting = asyncio.create_task(gateway.run())
        async with serve_http(gateway, HttpOptions(identify=anyone)) as port:
            print(port, flush=True)
            await asyncio.to_thread(sys.stdin.read)
        reporting.cancel()


asyncio.run(main())
