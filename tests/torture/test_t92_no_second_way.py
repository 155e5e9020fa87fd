"""T92: Every request to a server, a tool call or not, passes the same rules, hooks and audit log."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, PermissionAnswer
from dragoman.agent.mentions import expanded
from dragoman.calls import audit
from dragoman.cli import exit_codes
from dragoman.errors import PermissionRefused
from dragoman.hooks.declared import hook
from dragoman.paths import logs_dir
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.e2e.command import config
from tests.e2e.forked import run
from tests.servers import stdio_server
from tests.servers.library import LEGACY, Library
from tests.torture import projects
from tests.torture.bystander_host import until

pytestmark = [pytest.mark.requirement("PRM-1"), pytest.mark.requirement("CAT-9")]

LIB, PROMPT, BOOK, TEMPLATE = "lib", "mcp__lib__review", "book://divan", "book://{name}{?page}"
REVIEW = {"book": "divan"}


async def subscribe(host: Host) -> None:
    async with host.resources.subscribed(LIB, BOOK):
        pass


async def run_prompt(host: Host) -> None:
    await host.prompts.run(f"/{PROMPT} divan")


async def call_read(host: Host) -> None:
    arguments = {"server": LIB, "uri": BOOK}
    (await host.toolbox().call("read_mcp_resource", arguments)).raise_for_error()


async def call_list(host: Host) -> None:
    (await host.toolbox().call("list_mcp_resources", {"server": LIB})).raise_for_error()


Way = Callable[[Host], Awaitable[object]]
WAYS: dict[str, tuple[Way, str]] = {
    "resources.list": (lambda host: host.resources.list(LIB), "list_mcp_resources"),
    "resources.templates": (lambda host: host.resources.templates(LIB), "list_mcp_resources"),
    "resources.read": (lambda host: host.resources.read(LIB, BOOK), "read_mcp_resource"),
    "resources.subscribed": (subscribe, "read_mcp_resource"),
    "resources.complete": (
        lambda host: host.resources.complete(LIB, TEMPLATE, "name", "d"),
        "complete_mcp_argument",
    ),
    "prompts.list": (lambda host: host.prompts.list(LIB), "list_mcp_prompts"),
    "prompts.get": (lambda host: host.prompts.get(PROMPT, REVIEW), "get_mcp_prompt"),
    "prompts.run": (run_prompt, "get_mcp_prompt"),
    "prompts.complete": (
        lambda host: host.prompts.complete(PROMPT, "book", "d"),
        "complete_mcp_argument",
    ),
    "read_mcp_resource": (call_read, "read_mcp_resource"),
    "list_mcp_resources": (call_list, "list_mcp_resources"),
}
ASKED = ("resources/read", "resources/subscribe", "prompts/get", "completion/complete")
"""Requests sent only on demand; lists are read in advance."""
ways = pytest.mark.parametrize(("way", "name"), WAYS.values(), ids=WAYS.keys())


def refuse(event: dict[str, Any]) -> dict[str, Any]:
    return {"decision": "block", "reason": "not today"}


async def opened(host: Host) -> Host:
    await host.ready(timeout=20)
    await host.prompts.list()
    return host


def asked(library: Library) -> list[str]:
    return [call["method"] for call in library.calls if call["method"] in ASKED]


# --- deny rules ---

DENIES = ["mcp__lib", "mcp__lib__*", "mcp__*", "*", "MCP__LIB", "mcp__l*"]


@ways
@pytest.mark.parametrize("rule", DENIES)
async def test_t92_a_deny_rule_for_the_server_denies_every_kind_of_request(way: Way, name: str, rule: str):
    library = Library(revisions=LEGACY)
    async with Host({LIB: library}, permission_mode="bypassPermissions", rules={"deny": [rule]}) as host:
        await opened(host)
        with pytest.raises(PermissionRefused) as caught:
            await way(host)
    assert f"deny rule {rule} of dynamic (code)" in str(caught.value)
    assert asked(library) == []


@ways
async def test_t92_an_administrators_deny_rule_applies_to_every_kind_of_request(
    home: Path, way: Way, name: str
):
    projects.managed(home, {"permissions": {"deny": ["mcp__lib"]}})
    projects.user(home, {"permissions": {"allow": ["*"], "defaultMode": "bypassPermissions"}})
    library = Library(revisions=LEGACY)
    async with Host.configured(servers={LIB: library}) as host:
        await opened(host)
        with pytest.raises(PermissionRefused):
            await way(host)
    assert asked(library) == []


@ways
async def test_t92_a_deny_rule_with_the_documented_name_applies(way: Way, name: str):
    library = Library(revisions=LEGACY)
    rules = {"deny": [f"{name}(server=lib)"]}
    async with Host({LIB: library}, permission_mode="bypassPermissions", rules=rules) as host:
        await opened(host)
        with pytest.raises(PermissionRefused):
            await way(host)
    assert asked(library) == []


async def test_t92_a_deny_rule_can_match_the_uri_and_the_prompt():
    rules = {"deny": ["read_mcp_resource(uri=BOOK://d*)", "mcp__lib__review", "get_mcp_prompt(name=gr*)"]}
    library = Library()
    async with Host({LIB: library}, permission_mode="bypassPermissions", rules=rules) as host:
        await opened(host)
        assert (await host.resources.read(LIB, "book://atlas")).contents
        for refused in (
            host.resources.read(LIB, "book://divan"),
            host.resources.read(LIB, "book://%64eed"),
            host.prompts.get(PROMPT, REVIEW),
            host.prompts.get("mcp__lib__greet", {}),
        ):
            with pytest.raises(PermissionRefused):
                await refused


async def test_t92_denied_items_are_not_listed():
    rules = {"deny": ["mcp__lib"]}
    other = InMemoryServer("other", instructions="be kind")
    other.contents.add_resource("note://a", "a")
    other.contents.add_prompt("hello", lambda _: "hello", [], {})
    other.add_tool("look", lambda _a, _c: "seen")
    library = Library()
    async with Host({LIB: library, "other": other}, permission_mode="bypassPermissions", rules=rules) as host:
        await host.ready(timeout=20)
        box = host.toolbox()
        listed = json.loads((await box.call("list_mcp_resources")).text)
        assert [each["server"] for each in listed["resources"]] == ["other"]
        assert listed.get("problems", []) == []
        assert {each.server for each in await host.resources.list()} == {"other"}
        assert list(await host.resources.templates()) == []
        assert [prompt.name for prompt in await host.prompts.list()] == ["mcp__other__hello"]
        assert [tool.server for tool in box.tools() if tool.server] == ["other"]
        assert {tool.server for tool in (await box.search("touch acquire heard look")).tools} <= {"other", ""}
        assert (await box.search("select:mcp__lib__heard")).tools == ()
        assert set(host.instructions()) == {"other"}
        message, (problem,) = await expanded("see @lib:book://divan", host, Path.cwd())
        assert message == "see @lib:book://divan"
        assert "was not allowed" in problem
    assert asked(library) == []


@pytest.mark.parametrize(
    "rule",
    ["mcp__hidden", "list_mcp_resources(server=hidden)", f"read_mcp_resource(server=hidden, uri={BOOK})"],
)
async def test_t92_a_hidden_server_is_not_found_by_a_uri_and_not_named(rule: str):
    hidden = Library(revisions=LEGACY)
    async with Host({"hidden": hidden}, permission_mode="bypassPermissions", rules={"deny": [rule]}) as host:
        await host.ready(timeout=20)
        alone = await host.toolbox().call("read_mcp_resource", {"uri": BOOK})
        empty = await host.toolbox().call("read_mcp_resource", {"uri": BOOK, "server": ""})
    problem = "no connected server lists this resource or has a template for it, so name a server"
    assert alone.text == f"the arguments do not fit read_mcp_resource: {problem}"
    assert empty.text == alone.text
    servers = {"hidden": hidden, LIB: Library()}
    async with Host(servers, permission_mode="bypassPermissions", rules={"deny": [rule]}) as host:
        await host.ready(timeout=20)
        assert (await host.toolbox().call("read_mcp_resource", {"uri": BOOK})).text == "Poems"
    assert asked(hidden) == []


async def test_t92_a_server_found_by_a_uri_is_checked_like_a_named_one():
    library = Library(revisions=LEGACY)
    rules = {"deny": ["read_mcp_resource(server=lib)"], "allow": ["*"]}
    seen: list[str] = []

    def leave_out(event: dict[str, Any]) -> dict[str, Any]:
        seen.append(event["mcp_server_name"])
        return {"hookSpecificOutput": {"updatedInput": {"uri": BOOK}}}

    hooks = [hook(leave_out, "PreToolUse", matcher="read_mcp_resource")]
    async with Host({LIB: library, "copy": Library()}, rules=rules, hooks=hooks) as host:
        await host.ready(timeout=20)
        # A hook that removes the server from the arguments: it is looked up again.
        given = {"server": LIB, "uri": "book://none"}
        assert (await host.toolbox().call("read_mcp_resource", given)).text == "Poems"
    assert seen == [LIB]
    assert asked(library) == []


# --- ask rules ---


@ways
async def test_t92_an_ask_rule_asks_and_refuses_if_no_person_can_be_asked(way: Way, name: str):
    rules = {"ask": ["mcp__lib"], "allow": ["*"]}
    library = Library(revisions=LEGACY)
    async with Host({LIB: library}, rules=rules) as host:
        await opened(host)
        with pytest.raises(PermissionRefused, match="no person can be asked"):
            await way(host)
    assert asked(library) == []
    user = ScriptedUser(PermissionAnswer(True))
    async with Host({LIB: library}, rules=rules, interaction=user) as host:
        await opened(host)
        await way(host)
    assert [question.tool for question in user.asked].count(name) == 1
    assert {question.tool for question in user.asked} <= {name, "list_mcp_prompts"}


async def test_t92_a_request_without_a_server_name_asks_nothing_and_skips_servers_with_an_ask_rule():
    user = ScriptedUser(True)
    async with Host({LIB: Library()}, rules={"ask": ["mcp__lib"]}, interaction=user) as host:
        await host.ready(timeout=20)
        found = await host.resources.list()
        assert found.items == ()
        assert found.problems == (
            "lib: it is left out, because ask rule mcp__lib of dynamic (code) requires a question; "
            "name the server to be asked",
        )
    assert user.asked == []


@pytest.mark.parametrize("mode", ["default", "auto", "dontAsk", "plan"])
async def test_t92_a_request_of_the_program_needs_no_rule_and_one_of_a_model_does(mode: Any):
    user = ScriptedUser(False)
    async with Host({LIB: Library()}, permission_mode=mode, interaction=user) as host:
        await opened(host)
        assert (await host.resources.read(LIB, BOOK)).text == "Poems"
        assert (await host.prompts.get(PROMPT, REVIEW)).messages
        assert user.asked == []
        with pytest.raises(PermissionRefused):
            await call_read(host)


# --- hooks ---


@ways
@pytest.mark.parametrize("matcher", ["mcp__lib__*", "mcp__lib", "", "its own"])
async def test_t92_a_hook_can_refuse_every_kind_of_request(way: Way, name: str, matcher: str):
    library = Library(revisions=LEGACY)
    hooks = [hook(refuse, "PreToolUse", matcher=name if matcher == "its own" else matcher)]
    async with Host({LIB: library}, permission_mode="bypassPermissions", hooks=hooks) as host:
        await host.ready(timeout=20)
        with pytest.raises(PermissionRefused, match="not today"):
            if name == "get_mcp_prompt" or way is WAYS["prompts.complete"][0]:
                await until(lambda: host._prompts._known())  # read in advance: found without a list
            await way(host)
    assert asked(library) == []


async def test_t92_hooks_receive_server_and_subject_and_may_change_and_replace():
    seen: list[dict[str, Any]] = []

    def before(event: dict[str, Any]) -> dict[str, Any] | None:
        seen.append({key: event[key] for key in ("tool_name", "tool_input", "mcp_server_name")})
        if event["tool_input"].get("uri") == "book://none":
            return {"hookSpecificOutput": {"updatedInput": {"server": LIB, "uri": BOOK}}}
        return None

    def after(event: dict[str, Any]) -> dict[str, Any]:
        shouted = event["tool_response"].upper()
        return {"hookSpecificOutput": {"updatedMCPToolOutput": shouted, "additionalContext": "mind"}}

    hooks = [
        hook(before, "PreToolUse", matcher="read_mcp_resource|get_mcp_prompt|complete_mcp_argument"),
        hook(after, "PostToolUse", matcher="read_mcp_resource|get_mcp_prompt"),
    ]
    async with Host({LIB: Library()}, hooks=hooks) as host:
        await opened(host)
        assert (await host.resources.read(LIB, "book://none")).text == "POEMS\nmind"
        said = await host.prompts.get(PROMPT, REVIEW)
        assert [message.content.as_text() for message in said.messages][-1] == "mind"
        assert all(message.content.as_text().isupper() for message in said.messages[:-1])
        await host.prompts.complete(PROMPT, "book", "d")
    assert seen == [
        {
            "tool_name": "read_mcp_resource",
            "tool_input": {"server": LIB, "uri": "book://none"},
            "mcp_server_name": LIB,
        },
        {
            "tool_name": "get_mcp_prompt",
            "tool_input": {"server": LIB, "name": "review", "arguments": REVIEW},
            "mcp_server_name": LIB,
        },
        {
            "tool_name": "complete_mcp_argument",
            "tool_input": {"server": LIB, "name": "review", "argument": "book", "value": "d"},
            "mcp_server_name": LIB,
        },
    ]


async def test_t92_a_result_is_withheld_if_its_hook_fails():
    def broken(event: dict[str, Any]) -> None:
        raise RuntimeError

    hooks = [hook(broken, "PostToolUse", matcher="mcp__lib__*", blocks_on_error=True)]
    async with Host({LIB: Library()}, hooks=hooks) as host:
        await host.ready(timeout=20)
        withheld = "[the result is withheld: the hook"
        assert (await host.resources.read(LIB, BOOK)).text.startswith(withheld)
        listed = await host.resources.list(LIB)
        assert listed.items == ()
        assert listed.problems[0].startswith(withheld)
        suggested = await host.resources.complete(LIB, TEMPLATE, "name", "d")
        assert suggested.values == ()


# --- the audit log ---


@ways
async def test_t92_every_kind_of_request_writes_one_line_to_the_audit_log(home: Path, way: Way, name: str):
    rules = {"allow": ["read_mcp_resource"]}
    async with Host({LIB: Library(revisions=LEGACY)}, audit=True, rules=rules) as host:
        await opened(host)
        await way(host)
    lines = [entry for entry in audit.read(logs_dir()) if entry["tool"] == name]
    if name == "list_mcp_prompts":
        lines = lines[1:]  # the first one is `opened`'s
    (line,) = lines
    assert (line["server"], line["decision"], line["outcome"]) == (LIB, "allow", "ok")
    assert "divan" not in json.dumps(line)


async def test_t92_a_refusal_is_written_to_the_audit_log(home: Path):
    async with Host({LIB: Library()}, audit=True, rules={"deny": ["mcp__lib"]}) as host:
        await host.ready(timeout=20)
        with pytest.raises(PermissionRefused):
            await host.resources.read(LIB, BOOK)
    (line,) = audit.read(logs_dir())
    assert (line["tool"], line["server"], line["decision"], line["by"], line["rule"], line["outcome"]) == (
        "read_mcp_resource",
        LIB,
        "deny",
        "rule",
        "mcp__lib",
        "refused",
    )


# --- the command line ---

GIVEN = ("--mcp-config", config(lib=stdio_server("library.py")))
COMMANDS = {
    "read": ("read", LIB, BOOK),
    "read a template": ("read", LIB, TEMPLATE, "name=divan"),
    "read, completed": ("read", LIB, TEMPLATE, "--complete", "name=d"),
    "prompt": ("prompt", PROMPT, "divan"),
    "prompt, completed": ("prompt", PROMPT, "--complete", "book=d"),
    "resources": ("resources", "--server", LIB),
    "prompts": ("prompts", "--server", LIB),
}


@pytest.mark.slow
@pytest.mark.requirement("CLI-2")
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS.keys())
def test_t92_commands_apply_the_rules(home: Path, words: tuple[str, ...]):
    assert run(*words, *GIVEN).returncode == exit_codes.OK
    projects.managed(home, {"permissions": {"deny": ["mcp__lib"]}})
    done = run(*words, *GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.REFUSED, "")
    assert "deny rule mcp__lib of enterprise" in done.stderr
    assert [entry["decision"] for entry in audit.read(logs_dir())][-1] == "deny"


@pytest.mark.slow
@pytest.mark.requirement("CLI-2")
def test_t92_a_script_confirms_an_ask_rule_with_the_yes_option(home: Path):
    projects.user(home, {"permissions": {"ask": ["mcp__lib"]}})
    done = run("read", LIB, BOOK, *GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.REFUSED, "")
    assert "give --yes to call it" in done.stderr
    done = run("read", LIB, BOOK, "--yes", *GIVEN)
    assert (done.returncode, done.stdout) == (exit_codes.OK, "Poems")
    assert run("resources", *GIVEN).stdout == ""
    assert "book://divan" in run("resources", "--server", LIB, "--yes", *GIVEN).stdout
