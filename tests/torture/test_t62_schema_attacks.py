"""T62: Schemas received over the network cause no requests, take bounded time, and block neither tool
nor host."""

import pytest
from aiohttp import web

from dragoman import Host
from dragoman.errors import InvalidArguments
from tests.servers.web import Ask, answers, site, streamable
from tests.servers.web.given_answers import replace_results
from tests.torture.bystander_host import MEGABYTE, at_once
from tests.torture.conftest import MODERN


def nested(depth: int, keyword: str = "properties") -> dict:
    schema: dict = {"type": "string"}
    for _ in range(depth):
        inner = {"a": schema} if keyword == "properties" else [schema] if keyword == "allOf" else schema
        schema = {"type": "object", keyword: inner}
    return schema


def with_property(schema: object) -> dict:
    return {"type": "object", "properties": {"a": schema}}


ATTACKS = {
    "a reference to the network": with_property({"$ref": "$LISTENER/schema.json"}),
    "a reference to the network, with a fragment": with_property({"$ref": "$LISTENER/s.json#/$defs/x"}),
    "a base elsewhere": {"$id": "$LISTENER/", **with_property({"$ref": "other.json"})},
    "a dialect elsewhere": {"$schema": "$LISTENER/dialect.json", **with_property({"type": "string"})},
    "a reference to a file": with_property({"$ref": "file:///etc/passwd"}),
    "a reference to cloud metadata": with_property({"$ref": "http://169.254.169.254/latest/meta-data/"}),
    "a circle of references": {"type": "object", "$ref": "#"},
    "a circle of dynamic references": {
        "$dynamicAnchor": "n",
        "type": "object",
        "allOf": [{"$dynamicRef": "#n"}],
    },
    "references that double": {
        "type": "object",
        "allOf": [{"$ref": "#/$defs/d0"}],
        "$defs": {
            f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]}
            for n in range(60)
        },
    },
    "a pattern that takes for ever": with_property({"type": "string", "pattern": "^(a+)+$"}),
    "a pattern that looks back": with_property({"type": "string", "pattern": r"^(?=(a+))\1+$"}),
    "names by a pattern that takes for ever": {"type": "object", "patternProperties": {"^(a+)+$": False}},
    "a hundred levels": nested(100),
    "a step of next to nothing": with_property({"type": "number", "multipleOf": 1e-300}),
    "a choice of a hundred thousand": with_property({"enum": [f"v{n}" for n in range(100_000)]}),
    "nine thousand parts": {"type": "object", "anyOf": [{"required": [f"r{n}"]} for n in range(9_000)]},
    "a bound beyond numbers": with_property({"type": "string", "maxLength": 10**40}),
    "uniqueness of many": with_property({"type": "array", "uniqueItems": True}),
}
ARGUMENTS = {
    "a step of next to nothing": 0.3,
    "uniqueness of many": [[n] for n in range(3000)],
}


def with_address_of(schema: object, listener: str) -> object:
    """The schema with the listener's address in its place."""
    if isinstance(schema, dict):
        return {key: with_address_of(value, listener) for key, value in schema.items()}
    if isinstance(schema, list):
        return [with_address_of(value, listener) for value in schema]
    return schema.replace("$LISTENER", listener) if isinstance(schema, str) else schema


@pytest.mark.parametrize("attack", ATTACKS)
async def test_t62_a_hostile_schema_over_http_sends_no_request_and_blocks_no_call(bystander_host, attack):
    async with (
        site(answers.status(200, '{"type":"string"}')) as listener,
        streamable(revisions=(MODERN,)) as server,
    ):
        bad = {
            "name": "bad",
            "inputSchema": with_address_of(ATTACKS[attack], listener.origin),
            "outputSchema": with_address_of(ATTACKS[attack], listener.origin),
        }
        good = {"name": "good", "inputSchema": {"type": "object"}}
        content = {"content": [{"type": "text", "text": "ran"}], "structuredContent": {"a": "a" * 30 + "!"}}
        replace_results(
            server, {"tools/list": lambda _: {"tools": [bad, good]}, "tools/call": lambda _: content}
        )
        async with bystander_host({"url": server.url, "protocol": MODERN}, wait=False) as a:
            async with at_once():
                await a.host.ready(timeout=20)
            names = {tool.wire_name for tool in a.host.tools() if tool.server == "hostile"}
            assert "good" in names, "whatever becomes of the bad one"
            if "bad" in names:
                async with at_once():
                    outcome = await a.outcome("bad", a=ARGUMENTS.get(attack, "a" * 30 + "!"))
                # The call is validated with the schema if possible, or sent without validation.
                assert outcome.text.startswith("ran") or isinstance(outcome.error, InvalidArguments)
            else:
                assert any("'bad' is left out" in problem for problem in a.view.problems)
            assert (await a.call("good")).startswith("ran")
            assert a.pulse.growth_bytes < 128 * MEGABYTE
        assert listener.asks == [], "no schema is fetched"


@pytest.mark.parametrize("replies", ["json", "sse"])
@pytest.mark.parametrize("depth", [5_000, 100_000])
async def test_t62_a_very_deep_schema_fails_at_most_its_own_list(bystander_host, era, replies, depth):
    deep = b'{"properties":{"a":' * depth + b"{}" + b"}}" * depth
    tools = b'{"name":"deep","inputSchema":' + deep + b'},{"name":"good","inputSchema":{"type":"object"}}'

    def reply(ask: Ask) -> bytes:
        return answers.reply_to(ask, result={"tools": ["@"]}).replace(b'"@"', tools)

    async def streamed(ask: Ask) -> web.StreamResponse | None:
        return await answers.events(lambda _: b"data: " + reply(ask) + b"\n\n")(ask)

    on = {"tools/list": answers.body(reply) if replies == "json" else streamed}
    async with (
        streamable(revisions=(era,), on=on) as server,
        bystander_host({"url": server.url, "protocol": era}, wait=False) as a,
    ):
        async with at_once(5):
            await a.host.ready(timeout=20)
        assert a.view.status == "failed"
        assert "tools/list" in (a.view.reason or "")
        assert "deep" not in {tool.wire_name for tool in a.host.tools()}


async def test_t62_a_valid_schema_next_to_invalid_ones_is_still_enforced():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [{"name": "good", "inputSchema": schema}]
    tools += [
        {"name": f"bad_{n}", "inputSchema": with_address_of(attack, "http://127.0.0.1:9")}
        for n, attack in enumerate(ATTACKS.values())
    ]
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": tools}})
        async with Host({"x": {"url": server.url}}, permission_mode="bypassPermissions") as host:
            await host.ready(timeout=20)
            outcome = await host.call("mcp__x__good", {"n": "one"})
            assert isinstance(outcome.error, InvalidArguments)
            assert server.asked("tools/call") == []


# --- validated values ---

HUGE: dict[str, tuple[dict, object]] = {
    "one text": ({"type": "string", "pattern": "^(a|a)*$"}, "a" * 8_000_000 + "!"),
    "many items": (
        {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
        list(range(300_000)),
    ),
    "many names": (
        {"type": "object", "additionalProperties": {"type": "null"}},
        dict.fromkeys(map(str, range(100_000))),
    ),
    "a deep one": ({}, nested(200)),
    "many that do not fit": ({"type": "array", "items": {"enum": ["x"] * 100}}, ["y"] * 100_000),
}


@pytest.mark.requirement("CAL-1")
@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.parametrize(("schema", "value"), HUGE.values(), ids=HUGE.keys())
async def test_t62_huge_arguments_are_validated_off_the_loop_and_within_limits(bystander_host, schema, value):
    ran: list[int] = []
    tools = [{"name": "t", "inputSchema": with_property(schema)}]

    def run(params: dict) -> dict:
        ran.append(1)
        return {"content": [{"type": "text", "text": "ran"}]}

    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": tools}, "tools/call": run})
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            async with at_once(15):
                outcome = await a.outcome("t", a=value)
            assert outcome.text == "ran" or isinstance(outcome.error, InvalidArguments), outcome.text[:300]
            assert len(outcome.text) < 10_000, "what is wrong with them is told briefly"
            assert len(ran) == (outcome.text == "ran")


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize(("schema", "value"), HUGE.values(), ids=HUGE.keys())
async def test_t62_huge_results_are_validated_off_the_loop_and_within_limits(bystander_host, schema, value):
    tools = [{"name": "t", "inputSchema": {"type": "object"}, "outputSchema": with_property(schema)}]
    result = {"content": [{"type": "text", "text": "ran"}], "structuredContent": {"a": value}}
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": tools}, "tools/call": lambda _: result})
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            async with at_once(20):
                outcome = await a.outcome("t")
            assert not outcome.is_error
            assert all(len(problem) < 10_000 for problem in outcome.problems)


# --- small values that are expensive to validate ---

EXPENSIVE: dict[str, tuple[dict, object]] = {
    "thousands of objects to choose from": (
        {"type": "array", "items": {"enum": [{"k": n} for n in range(4000)]}},
        [{"k": -1}] * 900,
    ),
    "a pattern that backtracks, many times": (
        {"type": "array", "items": {"type": "string", "pattern": r"^(\w+\s?)*(?<=!)$"}},
        ["a" * 40 + "?"] * 400,
    ),
    "a pattern of ten thousand states": (
        {"type": "array", "items": {"type": "string", "pattern": "^(?:a{0,100}){0,100}$"}},
        ["a" * 1000] * 20,
    ),
}


@pytest.mark.requirement("CAL-1")
@pytest.mark.parametrize("side", ["inputSchema", "outputSchema"])
@pytest.mark.parametrize(("schema", "value"), EXPENSIVE.values(), ids=EXPENSIVE.keys())
async def test_t62_a_validation_that_would_take_too_long_is_skipped(bystander_host, schema, value, side):
    tools = [{"name": "t", "inputSchema": {"type": "object"}, side: with_property(schema)}]
    result = {"content": [{"type": "text", "text": "ran"}], "structuredContent": {"a": value}}
    async with streamable(revisions=(MODERN,)) as server:
        replace_results(server, {"tools/list": lambda _: {"tools": tools}, "tools/call": lambda _: result})
        async with bystander_host({"url": server.url, "protocol": MODERN}) as a:
            async with at_once(2):
                outcome = await a.outcome("t", **({"a": value} if side == "inputSchema" else {}))
            assert outcome.text.startswith("ran")
            if side == "outputSchema":
                assert any("would take too long" in problem for problem in outcome.problems)
