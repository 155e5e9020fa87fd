"""Rules of a program, of files and of the administrator, in a host that runs."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallOutcome, Host, PermissionAnswer
from dragoman.catalog.tools import BuiltinTool
from dragoman.errors import ConfigError, PermissionRefused
from dragoman.hooks.declared import hook
from dragoman.interaction import PermissionQuestion
from dragoman.permissions.classifier import Classification
from dragoman.permissions.rules import Call
from dragoman.testing import InMemoryServer, ScriptedUser
from tests.integration.waiting import until
from tests.servers import stdio_server

PLACES = {
    "user": ".dragoman/settings.json",
    "local": "work/.dragoman/settings.local.json",
    "enterprise": "managed/managed-mcp.json",
}


def server(ran: list[Any] | None = None) -> InMemoryServer:
    """Tools that say what they do; what was run is in `ran`."""
    made = InMemoryServer("shop")

    def run(arguments: dict[str, Any], context: object) -> str:
        if ran is not None:
            ran.append(arguments)
        return "done"

    text = {"a": {"type": "string"}}
    made.add_tool("get", run, properties=text, annotations={"readOnlyHint": True})
    made.add_tool("put", run, properties=text)
    made.add_tool("burn", run, properties=text, annotations={"destructiveHint": True})
    return made


def write(home: Path, scope: str, **rules: Any) -> Path:
    place = home / PLACES[scope]
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps({"permissions": rules}))
    return place


def verdict(outcome: CallOutcome) -> str:
    if isinstance(outcome.error, PermissionRefused):
        return f"refused: {outcome.error.reason}"
    assert not outcome.is_error, outcome.text
    return "made"


async def verdicts(host: Host, *names: str, **arguments: Any) -> list[bool]:
    """Which of these calls were made."""
    return [verdict(await host.call(f"mcp__shop__{name}", arguments)) == "made" for name in names]


# --- where rules come from ---


@pytest.mark.requirement("PRM-1", "CAL-1")
async def test_a_programs_rules_decide_and_other_calls_are_refused():
    ran: list[Any] = []
    rules = {"allow": ["mcp__shop(readOnly)", "mcp__shop__put(a=ok*)"], "deny": ["mcp__shop__burn"]}
    async with Host({"shop": server(ran)}, rules=rules) as host:
        await host.ready()
        assert await verdicts(host, "get", "put", "burn") == [True, False, False]
        assert await verdicts(host, "put", a="okay") == [True]
        refused = await host.call("mcp__shop__put", {"a": "no"})

    assert len(ran) == 2, "what was refused never reached the server"
    assert "no person can be asked" in refused.text
    assert "mcp__shop__put" in refused.text, "which rule would allow it"


@pytest.mark.parametrize("rules", [{"allow": ["mcp__a("]}, {"permit": ["mcp__a"]}, {"deny": [""]}], ids=str)
def test_a_programs_rule_that_cannot_be_read_is_an_error(rules: dict[str, list[str]]):
    with pytest.raises(ConfigError):
        Host({}, rules=rules)


@pytest.mark.requirement("PRM-1")
async def test_rules_of_code_and_files_are_combined_and_the_strictest_applies(home: Path):
    write(home, "user", allow=["mcp__shop"], ask=["mcp__shop__put"])
    write(home, "local", deny=["mcp__shop__get"], allow=["mcp__shop__put"])
    async with Host.configured(servers={"shop": server()}, rules={"deny": ["mcp__shop__burn"]}) as host:
        await host.ready()
        outcomes = [await host.call(f"mcp__shop__{name}") for name in ("get", "put", "burn")]

    words = [verdict(outcome) for outcome in outcomes]
    assert "local" in words[0]
    assert "ask rule mcp__shop__put of user" in words[1]
    assert "code" in words[2]


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("made", ["from files", "in code"])
async def test_an_administrators_rules_apply_to_every_host_and_override_others(home: Path, made: str):
    write(home, "enterprise", deny=["mcp__shop__burn"], ask=["mcp__shop__put"], allow=["mcp__shop__get"])
    options: dict[str, Any] = {
        "permission_mode": "bypassPermissions",
        "rules": {"allow": ["mcp__shop"], "ask": ["mcp__shop__get"]},
        "interaction": (user := ScriptedUser(True)),
        "hooks": [hook(_allows, "PreToolUse"), hook(_answers_yes, "PermissionRequest")],
    }
    servers = {"shop": server()}
    host = Host(servers, **options) if made == "in code" else Host.configured(servers=servers, **options)
    async with host:
        await host.ready()
        assert await verdicts(host, "get", "put", "burn") == [True, True, False]

    assert [question.tool for question in user.asked] == ["mcp__shop__put"], "by a person, not by a hook"
    assert not user.asked[0].is_rememberable


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize("how", ["reload", "watch"])
async def test_rules_changed_while_a_host_runs_apply_to_the_next_call(home: Path, how: str):
    write(home, "user", allow=["mcp__shop"])
    async with Host.configured(servers={"shop": server()}, watch=how == "watch") as host:
        await host.ready()
        assert await verdicts(host, "get", "put") == [True, True]
        write(home, "enterprise", deny=["mcp__shop__put"])
        write(home, "user", allow=["mcp__shop__put"])
        if how == "reload":
            await host.reload()
            assert await verdicts(host, "get", "put") == [False, False]
        else:

            async def followed() -> bool:
                return await verdicts(host, "get", "put") == [False, False]

            await until(followed)


async def test_a_file_broken_while_a_host_runs_allows_nothing(home: Path):
    file = write(home, "enterprise", deny=["mcp__shop__put"])
    async with Host.configured(servers={"shop": server()}, rules={"allow": ["mcp__shop"]}) as host:
        await host.ready()
        assert await verdicts(host, "put") == [False]
        file.write_text('{"permissions": {"deny": [')
        await host.reload()
        outcome = await host.call("mcp__shop__put") if host.servers else None

    assert outcome is None or outcome.is_error


# --- whose calls ---


@pytest.mark.requirement("PRM-1", "CAL-1")
async def test_the_same_rules_apply_to_an_agents_servers(home: Path):
    rules = {"allow": ["mcp__shop__get", "mcp__own__get"], "deny": ["mcp__*__burn"]}
    user = ScriptedUser(False)
    async with Host({"shop": server()}, rules=rules, interaction=user) as host:
        await host.ready()
        async with host.for_agent(["shop", {"own": server()}]) as agent:
            await agent.ready()
            made = {tool.name: not (await agent.call(tool.name)).is_error for tool in agent.tools()}

    assert {name for name, was_made in made.items() if was_made} == {"mcp__shop__get", "mcp__own__get"}
    assert sorted(question.tool for question in user.asked) == ["mcp__own__put", "mcp__shop__put"]


@pytest.mark.requirement("PRM-1")
async def test_an_administrators_later_rule_applies_to_an_agents_own_servers(home: Path):
    async with (
        Host.configured(servers={}, rules={"allow": ["mcp__own"]}) as host,
        host.for_agent([{"own": server()}]) as agent,
    ):
        await agent.ready()
        assert not (await agent.call("mcp__own__put")).is_error
        write(home, "enterprise", deny=["mcp__own__put"])
        await host.reload()
        assert (await agent.call("mcp__own__put")).is_error


def builtin(name: str, ran: list[Any], **more: Any) -> BuiltinTool:
    async def run(arguments: Any) -> str:
        ran.append(arguments)
        return "done"

    return BuiltinTool(name, run, description="", input_schema={"type": "object"}, **more)


@pytest.mark.requirement("PRM-1", "CAL-1")
async def test_built_in_tools_have_the_same_permission_check():
    ran: list[Any] = []
    own = {name: builtin(name, ran) for name in ("Write", "Read", "Other")}
    shell = builtin("Bash", ran, shell_argument="command")
    rules = {"allow": ["Read", "Bash(git status)", "mcp__*"], "deny": ["Write"]}
    async with Host({}, rules=rules) as host:
        tools = {**own, "Bash": shell}
        words = [verdict(await host.call(name, {}, builtin_tools=tools)) for name in own]
        commands = [
            verdict(await host.call("Bash", {"command": command}, builtin_tools=tools))
            for command in ("git status", "git status; rm x")
        ]

    assert [word == "made" for word in words] == [False, True, False]
    assert "deny rule Write" in words[0]
    assert [word == "made" for word in commands] == [True, False]
    assert len(ran) == 2


async def test_tools_of_a_conversation_have_the_same_permission_check():
    async with Host({"shop": server()}, rules={"allow": ["mcp__shop__get"], "deny": ["read_result"]}) as host:
        await host.ready()
        toolbox = host.toolbox()
        assert not (await toolbox.call("mcp__shop__get")).is_error
        assert (await toolbox.call("mcp__shop__put")).is_error
        denied = await toolbox.call("read_result", {"handle": "x"})

    assert "deny rule read_result" in denied.text


@pytest.mark.requirement("CAL-4")
async def test_each_call_of_a_turn_is_decided():
    rules = {"allow": ["mcp__shop(readOnly)"], "deny": ["mcp__shop__burn"]}
    async with Host({"shop": server()}, rules=rules) as host:
        await host.ready()
        calls = [(f"mcp__shop__{name}", {}) for name in ("get", "burn", "get", "put", "nothing")]
        outcomes = await host.call_all(calls)

    assert [outcome.is_error for outcome in outcomes] == [False, True, False, True, True]


# --- modes ---


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize("trusted", [True, False])
async def test_auto_mode_allows_reads_of_a_trusted_server_and_asks_about_the_rest(trusted: bool):
    tools = [{"name": "get", "annotations": {"readOnlyHint": True}}, {"name": "put"}]
    pages = json.dumps([{"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in tools]}])
    user = ScriptedUser(False)
    entry = stdio_server("lists_given_pages.py", pages, trusted=trusted)
    async with Host({"shop": entry}, permission_mode="auto", interaction=user) as host:
        await host.ready()
        assert await verdicts(host, "get", "put") == [trusted, False]

    assert len(user.asked) == (1 if trusted else 2)


class Judge:
    def __init__(self, classification: Classification | Exception) -> None:
        self.classification, self.heard = classification, list[str]()

    async def judge(self, call: Call, conversation: object) -> Classification:
        self.heard.append(call.tool)
        if isinstance(self.classification, Exception):
            raise self.classification
        return self.classification


@pytest.mark.requirement("PRM-2")
@pytest.mark.parametrize(
    ("classification", "made", "asked"),
    [
        (Classification("allow", "fine"), True, 0),
        (Classification("deny", "not fine"), False, 0),
        (Classification("ask", "who knows"), True, 1),
        (ValueError("the model is away"), True, 1),
    ],
    ids=str,
)
async def test_a_classifier_decides_or_leads_to_a_question(classification: Any, made: bool, asked: int):
    user, judge = ScriptedUser(True), Judge(classification)
    options: dict[str, Any] = {"permission_mode": "auto", "interaction": user, "classifier": judge}
    async with Host({"shop": server()}, rules={"deny": ["mcp__shop__burn"]}, **options) as host:
        await host.ready()
        assert await verdicts(host, "put", "burn") == [made, False]

    assert len(user.asked) == asked
    assert judge.heard == ["mcp__shop__put"], "a rule was heard before it"


@pytest.mark.requirement("PRM-2")
async def test_a_failing_classifier_without_an_interaction_refuses():
    judge = Judge(ValueError("secret detail"))
    async with Host({"shop": server()}, permission_mode="auto", classifier=judge) as host:
        await host.ready()
        refused = await host.call("mcp__shop__put")

    assert isinstance(refused.error, PermissionRefused)
    assert "secret detail" not in refused.text


@pytest.mark.requirement("PRM-2")
async def test_plan_mode_only_reads_even_with_allow_rules():
    user = ScriptedUser(True)
    options: dict[str, Any] = {"permission_mode": "plan", "interaction": user}
    async with Host({"shop": server()}, rules={"allow": ["mcp__shop__put"]}, **options) as host:
        await host.ready()
        assert await verdicts(host, "get", "put", "burn") == [True, False, False]

    assert [question.tool for question in user.asked] == ["mcp__shop__get"]


@pytest.mark.requirement("PRM-2")
async def test_without_an_interaction_a_refusal_names_the_rule_to_add_and_the_ask_rule():
    user = ScriptedUser(True)
    options: dict[str, Any] = {"permission_mode": "dontAsk", "interaction": user}
    rules = {"ask": ["mcp__shop__burn"], "allow": ["mcp__shop__get"]}
    async with Host({"shop": server()}, rules=rules, **options) as host:
        await host.ready()
        words = [verdict(await host.call(f"mcp__shop__{name}")) for name in ("get", "put", "burn")]

    assert words[0] == "made"
    assert "`dragoman permissions explain mcp__shop__put` shows which rule would allow it" in words[1]
    assert "ask rule mcp__shop__burn" in words[2]
    assert user.asked == []


# --- hooks and rules together ---


def _decides(behaviour: str, **more: Any) -> dict[str, Any]:
    said = {"permissionDecision": behaviour, "permissionDecisionReason": "so says the hook", **more}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **said}}


def _allows(given: Any) -> dict[str, Any]:
    return _decides("allow")


def _answers_yes(given: Any) -> dict[str, Any]:
    decision = {"behavior": "allow"}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


HOOKED = {
    "a deny rule beats a hook's allow": ("allow", {"deny": ["mcp__shop__put"]}, False, 0),
    "an ask rule beats a hook's allow": ("allow", {"ask": ["mcp__shop__put"]}, True, 1),
    "a hook allows what no rule decides": ("allow", {}, True, 0),
    "a hook's deny beats an allow rule": ("deny", {"allow": ["mcp__shop"]}, False, 0),
    "a hook's ask beats an allow rule": ("ask", {"allow": ["mcp__shop"]}, True, 1),
}


@pytest.mark.requirement("PRM-5", "PRM-1")
@pytest.mark.parametrize(("says", "rules", "made", "asked"), HOOKED.values(), ids=HOOKED.keys())
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_hooks_and_rules(says: str, rules: dict[str, Any], made: bool, asked: int, mode: Any):
    user = ScriptedUser(True)
    hooks = [hook(lambda given: _decides(says), "PreToolUse")]
    options: dict[str, Any] = {"interaction": user, "hooks": hooks, "permission_mode": mode}
    async with Host({"shop": server()}, rules=rules, **options) as host:
        await host.ready()
        assert await verdicts(host, "put") == [made]

    assert len(user.asked) == asked


@pytest.mark.requirement("PRM-5", "CAL-1")
async def test_rules_and_questions_get_the_arguments_changed_by_a_hook():
    ran: list[Any] = []
    user = ScriptedUser(True)
    hooks = [hook(lambda given: _decides("allow", updatedInput={"a": "/etc/passwd"}), "PreToolUse")]
    rules = {"deny": ["mcp__shop__put(a=/etc/*)"], "ask": ["mcp__shop__burn(a=/etc/*)"]}
    async with Host({"shop": server(ran)}, rules=rules, hooks=hooks, interaction=user) as host:
        await host.ready()
        assert await verdicts(host, "put", "burn", a="/tmp/x") == [False, True]

    assert [question.arguments for question in user.asked] == [{"a": "/etc/passwd"}]
    assert ran == [{"a": "/etc/passwd"}]


@pytest.mark.requirement("PRM-5", "CAL-1")
async def test_arguments_changed_by_a_hook_are_validated_again():
    ran: list[Any] = []
    hooks = [hook(lambda given: _decides("allow", updatedInput={"a": 7}), "PreToolUse")]
    async with Host({"shop": server(ran)}, hooks=hooks, permission_mode="bypassPermissions") as host:
        await host.ready()
        assert (await host.call("mcp__shop__put", {"a": "x"})).is_error

    assert ran == []


# --- names ---


@pytest.mark.requirement("PRM-1")
@pytest.mark.parametrize(
    "rule",
    ["mcp__my.shop__delete.all", "mcp__my_shop__delete_all", "MCP__MY_SHOP__DELETE_ALL", "mcp__*__delete*"],
)
async def test_a_deny_matches_a_renamed_tool(rule: str):
    made = InMemoryServer("x")
    for name in ("delete.all", "delete_all"):  # both would have one name, so each gets a hash
        made.add_tool(name, lambda arguments, context: "gone")
    async with Host({"my.shop": made}, permission_mode="bypassPermissions", rules={"deny": [rule]}) as host:
        await host.ready()
        names = [tool.name for tool in host.tools()]
        outcomes = [await host.call(name) for name in names]

    assert "mcp__my_shop__delete_all" not in names
    assert all(isinstance(outcome.error, PermissionRefused) for outcome in outcomes)


# --- people ---


@pytest.mark.requirement("PRM-3")
async def test_an_interaction_that_calls_tools_before_answering_does_not_wait():
    class Curious(ScriptedUser):
        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            if question.tool == "mcp__shop__burn":
                found = await host.call("mcp__shop__get")  # asked about as well, inside
                assert found.text == "done"
            return await super().allow(question)

    user = Curious(True)
    async with Host({"shop": server()}, interaction=user) as host:
        await host.ready()
        async with asyncio.timeout(10):
            outcomes = await asyncio.gather(*(host.call("mcp__shop__burn") for _ in range(5)))

    assert not any(outcome.is_error for outcome in outcomes)
    assert len(user.asked) == 10


@pytest.mark.requirement("PRM-3")
async def test_an_interaction_that_raises_is_a_refusal_and_the_next_question_is_asked():
    class Broken:
        times = 0

        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            self.times += 1
            if self.times == 1:
                raise RuntimeError("no \x1b[31mscreen")
            return PermissionAnswer(True)

    async with Host({"shop": server()}, interaction=Broken()) as host:
        await host.ready()
        first, second = [await host.call("mcp__shop__put") for _ in range(2)]

    assert "RuntimeError: no \\x1b[31mscreen" in first.text
    assert not second.is_error


@pytest.mark.requirement("PRM-3")
async def test_a_cancelled_question_lets_the_next_one_be_asked():
    class Slow:
        def __init__(self) -> None:
            self.reached, self.asked = asyncio.Event(), 0

        async def allow(self, question: PermissionQuestion) -> PermissionAnswer:
            self.asked += 1
            if self.asked == 1:
                self.reached.set()
                await asyncio.Event().wait()
            return PermissionAnswer(True)

    user = Slow()
    async with Host({"shop": server()}, interaction=user) as host:
        await host.ready()
        first = asyncio.create_task(host.call("mcp__shop__put"))
        await asyncio.wait_for(user.reached.wait(), 10)
        second = asyncio.create_task(host.call("mcp__shop__put"))
        first.cancel()
        async with asyncio.timeout(10):
            assert not (await second).is_error
        assert first.cancelled()


@pytest.mark.requirement("PRM-3")
async def test_a_permanent_grant_applies_to_this_and_later_hosts_and_to_no_other_tool(home: Path):
    user = ScriptedUser(PermissionAnswer(True, always="user"), False)
    async with Host.configured(servers={"shop": server()}, interaction=user) as host:
        await host.ready()
        assert await verdicts(host, "put", "put", "burn") == [True, True, False]
    async with Host.configured(servers={"shop": server()}) as host:
        await host.ready()
        assert await verdicts(host, "put", "burn") == [True, False]

    (rule,) = json.loads((home / PLACES["user"]).read_text())["permissions"]["allow"]
    assert rule == user.asked[0].rule


@pytest.mark.requirement("PRM-3")
async def test_a_permanent_grant_applies_after_a_change_of_rules_or_mode(home: Path):
    user = ScriptedUser(PermissionAnswer(True, always="user", whole_server=True))
    async with Host.configured(servers={"shop": server()}, interaction=user) as host:
        await host.ready()
        assert await verdicts(host, "put") == [True]
        host.add_rule("deny", "mcp__other")
        host.set_permission_mode("plan")
        host.set_permission_mode("default")
        assert [rule.text for rule in host.rules] == ["mcp__shop", "mcp__other"]
        assert await verdicts(host, "burn") == [True]
    assert len(user.asked) == 1


@pytest.mark.requirement("PRM-3")
async def test_a_permanent_grant_does_not_override_the_administrators_ask_rule(home: Path):
    write(home, "enterprise", ask=["mcp__shop"])
    user = ScriptedUser(PermissionAnswer(True, always="user", for_session=True))
    async with Host.configured(servers={"shop": server()}, interaction=user) as host:
        await host.ready()
        assert await verdicts(host, "put", "put") == [True, True]

    assert len(user.asked) == 2
    assert not (home / PLACES["user"]).exists()
