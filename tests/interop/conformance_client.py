"""What the official conformance suite starts as its client: `python conformance_client.py URL`.

I own: doing with a `Host` what a scenario waits for, and nothing that would help it to pass. The scenario's
name comes in MCP_CONFORMANCE_SCENARIO, what else it needs in MCP_CONFORMANCE_CONTEXT. Which revision to speak
is left to the host to find out. Prints "done" and ends with 0 only if everything came out as it should.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from dragoman import Host
from dragoman.interaction import FormAnswer, FormElicitation, PermissionAnswer, PermissionQuestion

SAMPLES = {"string": "text", "integer": 2, "number": 2.5, "boolean": True, "array": [], "object": {}}


class Agreeable:
    """A person who says yes, and fills in only what has no default."""

    async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(True)

    async def elicit_form(self, question: FormElicitation) -> FormAnswer:
        return FormAnswer("accept", sample(question.schema))


def sample(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A value for every property that does not bring one itself."""
    return {
        name: rule["enum"][0] if "enum" in rule else SAMPLES.get(rule.get("type", ""), "text")
        for name, rule in schema.get("properties", {}).items()
        if "default" not in rule
    }


async def call(host: Host, tool: str, arguments: Mapping[str, Any]) -> None:
    outcome = await host.call(f"mcp__server__{tool}", dict(arguments))
    outcome.raise_for_error()


# --- what the scenarios wait for ---


async def look_only(host: Host) -> None:
    """Connecting has listed the tools already."""


async def call_every_tool(host: Host) -> None:
    for tool in host.tools():
        await call(host, tool.wire_name, sample(tool.input_schema))


async def call_all_at_once(host: Host) -> None:
    """So that calls are under way while others go through several rounds."""
    tools = [tool.wire_name for tool in host.tools()]
    await asyncio.gather(*(call(host, tool, {}) for tool in tools))


async def call_as_told(host: Host) -> None:
    """A null stands for a value not given: the schema allows a boolean or none, and the host checks it."""
    for told in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        given = {name: value for name, value in told["arguments"].items() if value is not None}
        await call(host, told["name"], given)


async def send_the_schema_back(host: Host) -> None:
    schemas = {tool.wire_name: tool.input_schema for tool in host.tools()}
    await call(host, "json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


Action = Callable[[Host], Awaitable[None]]
ACTIONS: Mapping[str, Action] = {
    "initialize": look_only,
    "request-metadata": look_only,
    "json-schema-ref-no-deref": look_only,
    "http-custom-headers": call_as_told,
    "json-schema-2020-12-preservation": send_the_schema_back,
    "sep-2322-client-request-state": call_all_at_once,
}


async def main(url: str) -> None:
    entry = {"type": "http", "url": url}
    async with Host({"server": entry}, permission_mode="bypassPermissions", interaction=Agreeable()) as host:
        view = (await host.ready(timeout=30))["server"]
        if view.status != "connected":
            raise SystemExit(f"not connected: {view.reason}")
        await ACTIONS.get(os.environ["MCP_CONFORMANCE_SCENARIO"], call_every_tool)(host)
    print("done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
