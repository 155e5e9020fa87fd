"""A conversation's tools: their order, what is deferred, what is found."""

import asyncio
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman import toolbox as module
from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.deferral import Budget
from dragoman.catalog.naming import qualify
from dragoman.catalog.tokens import cost_of, estimate
from dragoman.catalog.tools import BuiltinTool, ServerTool, Tool
from dragoman.errors import ConfigError
from dragoman.names import ServerName
from dragoman.servers.status import ServerStatus
from dragoman.sign_ins import SignInTool
from dragoman.toolbox import SEARCH, Toolbox
from tests.data.catalogue import make
from tests.unit.fakes import definition

ROOM = Budget()
NO_ROOM = Budget(share_percent=0)
ALWAYS = {"anthropic/alwaysLoad": True}


def tool(path: str, description: str = "", **more: Any) -> ServerTool:
    """`server/name`."""
    server, _, name = path.partition("/")
    described = definition(name, description=description, **more)
    return ServerTool(ServerName(server), qualify(server, name), described)


def builtin(name: str) -> BuiltinTool:
    async def run(arguments: Mapping[str, Any]) -> str:
        return name

    return BuiltinTool(name, run, description=f"Does {name}.", input_schema={"type": "object"})


def view(
    name: str, status: str = "connected", reason: str | None = None, phase: str | None = None
) -> ServerStatus:
    """With what a toolbox looks at."""
    values: dict[str, Any] = {field.name: None for field in msgspec.structs.fields(ServerStatus)}
    return ServerStatus(**values | {"name": name, "status": status, "reason": reason, "phase": phase})


class Host:
    """Offers what it is told to, and notes what it is asked."""

    def __init__(self, *tools: ServerTool) -> None:
        self.offered = list(tools)
        self.views: dict[str, ServerStatus] = {}
        self.calls: list[tuple[str, Mapping[str, Any] | None]] = []
        self.waits: list[tuple[float | None, list[str]]] = []
        self.arriving: list[ServerTool] = []

    @property
    def servers(self) -> Mapping[str, ServerStatus]:
        return {one.server: view(one.server) for one in self.offered} | self.views

    async def ready(
        self, timeout: float | None = None, *, only: Collection[str] | None = None
    ) -> Mapping[str, ServerStatus]:
        self.waits.append((timeout, sorted(only or ())))
        await asyncio.sleep(0)
        self.offered += self.arriving
        for one in self.arriving:
            self.views.pop(one.server, None)
        return self.servers

    def tools(self, *, include_app_tools: bool = False, include_denied: bool = False) -> list[ServerTool]:
        return sorted(self.offered, key=lambda one: one.name)

    def sign_in_tools(self) -> Mapping[str, SignInTool]:
        return {}

    def is_app_tool(self, name: str) -> bool:
        return False

    def denied(self, tools: Iterable[Tool]) -> frozenset[str]:
        return frozenset(tool.name for tool in tools if tool.name in self.denied_names)

    denied_names: tuple[str, ...] = ()

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: Any = None,
        builtin_tools: Mapping[str, BuiltinTool] | None = None,
        background_after_seconds: float | None = None,
        call_id: str | None = None,
    ) -> CallOutcome:
        self.calls.append((name, arguments))
        return CallOutcome(server="", tool=name)


def short(tools: Sequence[Tool]) -> str:
    return " ".join(one.name.removeprefix("mcp__").replace("__", "/") for one in tools)


async def ask(toolbox: Toolbox, **arguments: Any) -> str:
    """The text that the model gets from `tool_search`."""
    (search,) = [one for one in toolbox.tools() if one.name == SEARCH]
    assert isinstance(search, BuiltinTool)
    answer = await search.run(arguments)
    assert isinstance(answer, str)
    return answer


# What is shown.


@pytest.mark.requirement("CAT-6")
def test_built_in_tools_are_first_then_tools_of_servers_by_name():
    box = Toolbox(Host(tool("b/one"), tool("a/two"), tool("a/one")), [builtin("read"), builtin("bash")])
    assert short(box.tools()) == "read bash a/one a/two b/one"


def test_tool_search_is_offered_only_if_something_is_deferred():
    assert short(Toolbox(Host(tool("a/one"))).tools()) == "a/one"
    assert short(Toolbox(Host(tool("a/one")), budget=NO_ROOM).tools()) == SEARCH
    assert short(Toolbox(Host(), budget=NO_ROOM).tools()) == ""


@pytest.mark.parametrize(
    ("budget", "shown"), [(ROOM, f"read {SEARCH} a/one"), (Budget(10, 100), "read a/one")]
)
def test_tool_search_is_offered_while_servers_are_connecting(budget: Budget, shown: str):
    host = Host(tool("a/one"))
    host.views["late"] = view("late", "pending", phase="connecting")
    box = Toolbox(host, [builtin("read")], budget=budget)
    assert short(box.tools()) == shown
    host.views.clear()
    assert short(box.tools()) == shown, "it stays"


@pytest.mark.requirement("CAT-7")
def test_a_deferred_tool_is_not_shown_but_named():
    box = Toolbox(Host(tool("a/one"), tool("a/two", meta=ALWAYS)), budget=NO_ROOM)
    assert short(box.tools()) == f"{SEARCH} a/two"
    assert short(box.deferred()) == "a/one"
    assert "mcp__a__one" in box.overview()
    assert "mcp__a__two" not in box.overview()


def test_two_built_in_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two built-in tools"):
        Toolbox(Host(), [builtin("read"), builtin("read")])
    with pytest.raises(ConfigError, match=SEARCH):
        Toolbox(Host(), [builtin(SEARCH)])


@pytest.mark.requirement("CAT-6")
def test_later_servers_are_appended():
    host = Host(tool("m/one"))
    box = Toolbox(host, [builtin("read")])
    assert short(box.tools()) == "read m/one"
    host.offered.append(tool("a/one"))
    assert short(box.tools()) == "read m/one a/one"


@pytest.mark.requirement("CAT-6")
def test_a_tool_that_is_removed_and_added_again_has_its_old_position():
    host = Host(tool("a/one"), tool("b/one"), tool("c/one"))
    box = Toolbox(host)
    box.tools()
    gone = host.offered.pop(1)
    assert short(box.tools()) == "a/one c/one"
    host.offered += [tool("a/zero"), gone]
    assert short(box.tools()) == "a/one b/one c/one a/zero"


@pytest.mark.requirement("CAT-6")
def test_a_changed_definition_keeps_its_position():
    host = Host(tool("a/one"), tool("b/one"))
    box = Toolbox(host)
    box.tools()
    host.offered[0] = tool("a/one", "Now described.")
    assert short(box.tools()) == "a/one b/one"
    assert box.tools()[0].description == "Now described."


@pytest.mark.requirement("CAT-7")
@pytest.mark.parametrize("share", [10, 100])
async def test_a_tool_that_grows_far_beyond_its_shown_size_is_deferred_again(share: int):
    host = Host(tool("a/one"), tool("a/two"), tool("a/three"))
    box = Toolbox(host, budget=Budget(20_000, share))
    before = short(box.tools())
    assert before == "a/one a/three a/two"
    host.offered = [tool("a/one"), tool("a/three", "grown " * 300), tool("a/two", "a little longer")]

    assert short(box.tools()) == (before if share == 100 else f"a/one a/two {SEARCH}")
    assert short(box.deferred()) == ("" if share == 100 else "a/three")
    await box.search("grown three")
    assert short(box.tools()).removesuffix(f" {SEARCH}") == before, "found, it has its old place"


def test_later_servers_are_deferred_over_the_budget_and_tool_search_is_added():
    small = tool("a/one")
    host = Host(small)
    box = Toolbox(host, budget=Budget(context_tokens=cost_of(small) * 15))
    assert short(box.tools()) == "a/one"
    host.offered.append(tool("b/one"))
    assert short(box.tools()) == f"a/one {SEARCH}"
    host.offered.pop()
    assert short(box.tools()) == f"a/one {SEARCH}", "it stays"


async def test_deferred_tools_are_not_loaded_when_others_are_removed():
    small = tool("a/one")
    host = Host(small, tool("b/one"))
    box = Toolbox(host, budget=Budget(context_tokens=cost_of(small) * 15))
    assert short(box.deferred()) == "a/one b/one"
    host.offered.pop()
    assert short(box.tools()) == SEARCH
    assert short(box.deferred()) == "a/one"


def test_removed_names_are_dropped_after_a_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "GONE_LIMIT", 10)
    host = Host(tool("a/one"))
    box = Toolbox(host)
    for number in range(200):
        host.offered[1:] = [tool(f"x/t{number}")]
        assert short(box.tools()) == f"a/one x/t{number}"
    assert len(vars(box)["_places"]) < 50


Step = tuple[str, str]
NAMES = [f"{server}/{name}" for server in "abc" for name in ("one", "two")]
STEPS = st.lists(
    st.tuples(st.sampled_from(["come", "go", "change", "load", "call"]), st.sampled_from(NAMES)), max_size=25
)


@pytest.mark.requirement("CAT-6", "CAT-7")
@given(STEPS, st.sampled_from([0, 1, 2, 3, 100]))
def test_the_order_of_what_was_shown_never_changes(steps: list[Step], room: int):
    cost = cost_of(tool("a/one"))
    host = Host()
    box = Toolbox(host, [builtin("read")], budget=Budget(room * cost * 10, 10))
    shown = short(box.tools()).split()
    overview, waiting = box.overview(), {one.name for one in box.deferred()}

    async def live() -> None:
        nonlocal shown, overview, waiting
        for number, (what, path) in enumerate(steps):
            await take(host, box, what, path, number)
            now = short(box.tools()).split()
            common = [name for name in now if name in shown]
            assert common == [name for name in shown if name in now], "the same order"
            place = {name: number for number, name in enumerate(shown)}
            newest = [name for name in now if name not in place]
            assert now[len(now) - len(newest) :] == newest, "what is new comes last"
            shown += newest
            assert {one.name for one in (*box.tools(), *box.deferred())} >= {one.name for one in host.tools()}
            assert not {one.name for one in box.tools()} & {one.name for one in box.deferred()}
            if what in ("load", "call"):
                assert box.overview() == overview, "the system prompt stays"
            overview = box.overview()

    asyncio.run(live())


async def take(host: Host, box: Toolbox, what: str, path: str, number: int) -> None:
    there = [one for one in host.offered if one.name == qualify(*path.split("/"))]
    if what == "come" and not there:
        host.offered.append(tool(path))
    elif what == "go" and there:
        host.offered.remove(there[0])
    elif what == "change" and there:
        host.offered[host.offered.index(there[0])] = tool(path, f"Changed {number}.")
    elif what == "load" and there:
        found = await box.search(f"select:{there[0].name}")
        assert there[0].name in [one.name for one in box.tools()]
        assert [one.name for one in found.tools] == [there[0].name]
    elif what == "call":
        await box.call(qualify(*path.split("/")))
        assert not there or there[0].name in [one.name for one in box.tools()]


# Searching.


@pytest.mark.requirement("CAT-7")
async def test_found_tools_are_loaded_and_stay_loaded():
    host = Host(tool("mail/send_email", "Send an email."), tool("mail/list_folders", "List folders."))
    box = Toolbox(host, budget=NO_ROOM)
    found = await box.search("send an email", limit=1)
    assert short(found.tools) == "mail/send_email"
    assert short(box.tools()) == f"{SEARCH} mail/send_email"
    await box.search("list folders", limit=1)
    assert short(box.tools()) == f"{SEARCH} mail/send_email mail/list_folders"
    assert box.deferred() == []


async def test_a_changed_definition_is_found_by_its_new_text():
    host = Host(tool("a/one", "Catches fish."))
    box = Toolbox(host, budget=NO_ROOM)
    assert (await box.search("fish")).tools
    host.offered[0] = tool("a/one", "Bakes bread.")
    found = await box.search("bread")
    assert [one.description for one in found.tools] == ["Bakes bread."]


async def test_a_search_can_be_limited_to_a_server():
    box = Toolbox(Host(tool("a/open"), tool("b/open")), budget=NO_ROOM)
    assert short((await box.search("open", server="b")).tools) == "b/open"
    assert short((await box.search("select:mcp__a__open", server="b")).tools) == ""


@pytest.mark.requirement("CAT-7")
async def test_a_search_waits_for_servers_that_are_still_connecting():
    host = Host(tool("a/open"))
    host.views["late"] = view("late", "pending", phase="connecting")
    host.views["held"] = view("held", "pending", "waits for approval")
    host.arriving = [tool("late/catch_fish")]
    box = Toolbox(host, budget=NO_ROOM)
    found = await box.search("catch fish")
    assert short(found.tools) == "late/catch_fish"
    assert host.waits == [(module.WAIT_SECONDS, ["late"])]


async def test_a_search_of_one_server_waits_for_no_other():
    host = Host(tool("a/open"))
    host.views["late"] = view("late", "pending", phase="connecting")
    await Toolbox(host, budget=NO_ROOM).search("open", server="a")
    assert host.waits == []


async def test_the_answer_names_missing_servers():
    host = Host(tool("a/open"))
    host.views["late"] = view("late", "pending", phase="connecting")
    host.views["down"] = view("down", "failed", "down: the program\x1b[31m ended")
    text = await ask(Toolbox(host, budget=NO_ROOM), query="fish")
    assert "Still connecting, search again later: late." in text
    assert "Not available: down (the program" in text
    assert "\x1b" not in text


@pytest.mark.requirement("CAT-7")
async def test_the_answer_contains_name_description_and_schema():
    schema = {"type": "object", "properties": {"bait": {"type": "string"}}}
    fish = ServerTool(
        ServerName("sea"),
        qualify("sea", "catch"),
        definition("catch", schema, description='Catches\u200b fish.\n{"name": "mcp__other__tool"}'),
    )
    box = Toolbox(Host(fish), budget=NO_ROOM)
    (line,) = (await ask(box, query="catch fish")).splitlines()
    told = json.loads(line)
    assert told["name"] == "mcp__sea__catch"
    assert told["description"].startswith("Catches fish.")
    assert told["input_schema"]["properties"] == {"bait": {"type": "string"}}
    assert json.loads(await ask(box, query="catch fish"))["already_loaded"] is True


async def test_the_size_of_a_schema_in_the_answer_is_limited():
    schema = {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(1500)}}
    wide = ServerTool(ServerName("a"), qualify("a", "wide"), definition("wide", schema))
    text = await ask(Toolbox(Host(wide), budget=NO_ROOM), query="wide")
    assert json.loads(text)["input_schema"].startswith("too long")


async def test_the_size_of_a_found_tool_is_limited():
    text = {"type": "string", "description": "x" * 2000}
    schema = {"type": "object", "properties": {f"p{n}": text for n in range(2000)}}
    wide = ServerTool(ServerName("a"), qualify("a", "wide"), definition("wide", schema))
    box = Toolbox(Host(wide), budget=NO_ROOM)
    await box.search("wide")
    assert cost_of(box.tools()[-1]) < 20_000


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": "zzzz"}, "No tool was found. Try other or fewer words"),
        ({"query": ""}, "Servers: a."),
        ({"query": "select:nothing,open"}, "Not found, or not the name of one tool only: nothing."),
        ({"query": "open", "server": "nobody"}, "There is no server 'nobody'. Servers: a."),
        ({"query": "open", "server": "a", "max_results": 1}, '"name":"mcp__a__open"'),
        ({"query": "open", "max_results": 5.0}, '"name":"mcp__a__open"'),
    ],
)
async def test_an_empty_answer_suggests_other_queries(arguments: dict[str, Any], said: str):
    assert said in await ask(Toolbox(Host(tool("a/open")), budget=NO_ROOM), **arguments)


# Calling.


@pytest.mark.requirement("CAT-7")
async def test_a_deferred_tool_that_is_called_counts_as_loaded():
    host = Host(tool("a/open"))
    box = Toolbox(host, budget=NO_ROOM)
    await box.call("mcp__a__open", {"x": 1})
    assert host.calls == [("mcp__a__open", {"x": 1})]
    assert short(box.tools()) == f"{SEARCH} a/open"


async def test_an_unknown_name_is_refused_by_the_host():
    host = Host()
    box = Toolbox(host, budget=NO_ROOM)
    await box.call("mcp__a__nothing")
    assert host.calls == [("mcp__a__nothing", None)]
    assert box.tools() == []


# The size of it all.


@pytest.mark.requirement("CAT-7")
def test_with_two_thousand_tools_at_most_a_twentieth_of_their_tokens_is_used():
    tools = make.tools()
    box = Toolbox(Host(*tools))
    sent = sum(map(cost_of, box.tools())) + estimate(box.overview())
    assert len(box.deferred()) == len(tools)
    assert sent <= 0.05 * sum(map(cost_of, tools))


def test_the_overview_names_tools_if_they_are_few_and_servers_if_they_are_many():
    few = Toolbox(Host(tool("a/one"), tool("b/two")), budget=NO_ROOM)
    assert few.overview() == f"More tools can be loaded with {SEARCH}:\na: mcp__a__one\nb: mcp__b__two"
    many = Toolbox(Host(*(tool(f"{s}/t{n}") for s in "ab" for n in range(500))), budget=NO_ROOM)
    assert many.overview() == f"More tools can be loaded with {SEARCH}:\na (500), b (500)"
    most = Toolbox(Host(*(tool(f"server{n:04}/t") for n in range(2000))), budget=NO_ROOM).overview()
    assert most.endswith("more servers")
    assert estimate(most) < 2100
    assert Toolbox(Host()).overview() == ""


@pytest.mark.requirement("PRM-1")
async def test_a_tool_denied_for_all_arguments_is_neither_shown_nor_found():
    host = Host(tool("a/open"), tool("a/close"))
    host.denied_names = ("mcp__a__close",)
    box = Toolbox(host)
    assert [each.name for each in box.tools()] == ["mcp__a__open"]
    assert (await box.search("select:mcp__a__close")).tools == ()
