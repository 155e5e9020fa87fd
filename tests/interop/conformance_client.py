"""The client that the official conformance suite starts: `python conformance_client.py URL`.

Does with a `Host` what a scenario expects, and nothing that would help it to pass. MCP_CONFORMANCE_SCENARIO
has the scenario's name, MCP_CONFORMANCE_CONTEXT its other data. The host negotiates the revision. Prints
"done" and exits with 0 only if every result is as expected.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import aiohttp
from yarl import URL

from dragoman import Host, paths
from dragoman.errors import HttpError, SignInFailed
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


# --- signing in ---

REFUSALS: Mapping[str, str] = {
    "auth/resource-mismatch": "is about another resource",
    "auth/iss-supported-missing": "does not say which authorization server it comes from",
    "auth/iss-wrong-issuer": "comes from another authorization server",
    "auth/iss-unexpected": "comes from another authorization server",
    "auth/iss-normalized": "comes from another authorization server",
    "auth/metadata-issuer-mismatch": "is that of another issuer",
}
"""Scenarios in which a sign-in has to be refused, and the words of the refusal."""
ATTEMPTS = 3
"""Sign-ins of one person in one scenario."""


class FollowsLinks:
    """A person whose browser is signed in already: the page redirects at once."""

    async def show_url(self, url: str, deliver: Callable[[str], bool]) -> None:
        async with aiohttp.ClientSession() as browser:
            async with browser.get(URL(url, encoded=True), allow_redirects=False) as page:
                target = page.headers["Location"]
            async with browser.get(URL(target, encoded=True)) as page:
                await page.read()

    async def confirm_issuer(self, server: str, issuer: str) -> bool:
        return True

    def notice(self, text: str) -> None:
        print(text, file=sys.stderr)


def oauth_of(scenario: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """What a person would write into the entry, from what the scenario says."""
    match scenario:
        case "auth/basic-cimd":
            return {"clientMetadataUrl": "https://conformance-test.local/client-metadata.json"}
        case "auth/client-credentials-jwt":
            return {
                "grant": "client_credentials",
                "clientId": context["client_id"],
                "privateKey": context["private_key_pem"],
                "signingAlgorithm": context["signing_algorithm"],
            }
        case "auth/client-credentials-basic":
            return {
                "grant": "client_credentials",
                "clientId": context["client_id"],
                "clientSecret": context["client_secret"],
            }
        case "auth/wif-jwt-bearer":
            return {"grant": "workload_identity", "workloadToken": context["valid_jwt"]}
        case "auth/enterprise-managed-authorization":
            return {"xaa": True, "clientId": context["client_id"], "clientSecret": context["client_secret"]}
        case "auth/dpop" | "auth/dpop-nonce":
            return {"dpop": True}
        case "auth/pre-registration":
            names = {"client_id": "clientId", "client_secret": "clientSecret", "issuer": "issuer"}
            return {ours: context[theirs] for theirs, ours in names.items() if theirs in context}
        case _:
            return {}


def write_settings(context: Mapping[str, Any]) -> None:
    """The company's identity provider, as an administrator would set it."""
    provider = {
        "issuer": context["idp_issuer"],
        "clientId": context["idp_client_id"],
        "idToken": context["idp_id_token"],
        "enabled": True,
    }
    folder = paths.config_dir()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"xaaIdp": provider}))


async def sign_in_and_call(host: Host, scenario: str) -> None:
    """Signs in whenever the server asks for it, then calls every tool."""
    screen = FollowsLinks()
    for _ in range(ATTEMPTS):
        if host.servers["server"].status == "needs-auth":
            await host.sign_in("server", screen)
            continue
        if host.servers["server"].status != "connected":
            raise SystemExit(f"not connected: {host.servers['server'].reason}")
        try:
            await call_every_tool(host)
            if scenario == "auth/authorization-server-migration":
                await call_every_tool(host)
        except HttpError as error:
            if error.status not in (401, 403):
                raise
            await host.sign_in("server", screen)
            continue
        return
    if scenario != "auth/scope-retry-limit":
        raise SystemExit(f"it still asks for a sign-in: {host.servers['server'].reason}")


async def expect_refusal(host: Host, words: str) -> None:
    try:
        await host.sign_in("server", FollowsLinks())
    except SignInFailed as error:
        if words in str(error):
            return
        raise
    raise SystemExit("the sign-in was not refused")


async def run_auth(url: str, scenario: str) -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    entry = {"type": "http", "url": url, "oauth": oauth_of(scenario, context)}
    if "idp_issuer" in context:
        write_settings(context)
    async with Host.configured(
        servers={"server": entry}, permission_mode="bypassPermissions", interaction=Agreeable()
    ) as host:
        await host.ready(timeout=30)
        if scenario in REFUSALS:
            await expect_refusal(host, REFUSALS[scenario])
        else:
            await sign_in_and_call(host, scenario)
    print("done")


async def main(url: str) -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    if scenario.startswith("auth/"):
        await run_auth(url, scenario)
        return
    entry = {"type": "http", "url": url}
    async with Host({"server": entry}, permission_mode="bypassPermissions", interaction=Agreeable()) as host:
        view = (await host.ready(timeout=30))["server"]
        if view.status != "connected":
            raise SystemExit(f"not connected: {view.reason}")
        await ACTIONS.get(scenario, call_every_tool)(host)
    print("done")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
