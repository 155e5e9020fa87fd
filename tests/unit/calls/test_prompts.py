"""Prompts for programs: found by name, checked, filled in, completed."""

from typing import Any

import msgspec
import pytest

from dragoman.calls.prompts import Prompts
from dragoman.content.blocks import TextBlock
from dragoman.errors import CallError, CallTimeout, InvalidArguments, RemoteError
from tests.unit.calls.test_resources import Servers, Session
from tests.unit.fakes import allowed_requests

pytestmark = pytest.mark.requirement("CAT-10")
REVIEW = {"name": "review", "arguments": [{"name": "book", "required": True}, {"name": "tone"}]}
SAID = {"messages": [{"role": "user", "content": {"type": "text", "text": "Read it."}}]}


def listing(*prompts: Any) -> dict[str, Any]:
    return {"prompts": [{"name": each} if isinstance(each, str) else each for each in prompts]}


def prompts_of(*sessions: Session, **more: Any) -> Prompts:
    servers = Servers(*sessions, **more)
    return Prompts(servers, allowed_requests())  # type: ignore[arg-type]


async def test_prompts_are_named_like_tools():
    found = await prompts_of(
        Session("a", prompts_list=listing("x y")), Session("b", prompts_list=listing("z", 7))
    ).list()

    assert [each.name for each in found] == ["mcp__a__x_y", "mcp__b__z"]
    assert found.problems[0].startswith("b: number 2 of the prompts is left out")


async def test_prompts_with_the_same_name_get_distinct_names_also_when_one_server_is_listed():
    prompts = prompts_of(
        Session("a", prompts_list=listing("b__c")), Session("a__b", prompts_list=listing("c"))
    )
    names = [each.name for each in await prompts.list()]

    assert len(set(names)) == 2
    assert [each.name for each in await prompts.list("a")] == names[:1]


async def test_a_prompt_is_read_by_its_name_with_its_arguments():
    box = Session("box", prompts_list=listing(REVIEW), prompts_get=SAID)
    result = await prompts_of(box).get("mcp__box__review", {"book": "divan"})

    assert box.asked[-1] == ("prompts/get", {"name": "review", "arguments": {"book": "divan"}})
    assert [each.content for each in result.messages] == [TextBlock("Read it.")]


async def test_a_slash_command_is_run():
    box = Session("box", prompts_list=listing(REVIEW), prompts_get=SAID)
    await prompts_of(box).run('/mcp__box__review "the divan" tone=kind')

    assert box.asked[-1][1]["arguments"] == {"book": "the divan", "tone": "kind"}


@pytest.mark.parametrize("arguments", [{}, {"book": "x", "other": "y"}, {"book": 7}], ids=str)
async def test_invalid_arguments_do_not_reach_the_server(arguments: Any):
    box = Session("box", prompts_list=listing(REVIEW))
    with pytest.raises(InvalidArguments):
        await prompts_of(box).get("mcp__box__review", arguments)
    assert [method for method, _ in box.asked] == ["prompts/list"]


async def test_an_unknown_prompt_is_an_error_with_a_hint():
    box = Session("box", prompts_list=listing(REVIEW))
    with pytest.raises(CallError, match="no prompt named mcp__box__revue") as caught:
        await prompts_of(box).get("mcp__box__revue")
    assert "mcp__box__review" in (caught.value.hint or "")


async def test_a_known_prompt_is_found_without_listing_again():
    box = Session("box", prompts_list={**listing(REVIEW), "ttlMs": 0}, prompts_get=SAID)
    prompts = prompts_of(box)
    await prompts.list()
    await prompts.get("mcp__box__review", {"book": "x"})
    await prompts.get("mcp__box__review", {"book": "x"})

    assert [method for method, _ in box.asked] == ["prompts/list", "prompts/get", "prompts/get"]


async def test_each_round_sends_only_the_answers_to_the_previous_round():
    question = {"method": "elicitation/create", "params": {"message": "?"}}
    asks = {"resultType": "input_required", "inputRequests": {"a": question}, "requestState": "first"}
    waits = {"resultType": "input_required", "requestState": "second"}
    box = Session("box", prompts_list=listing("greet"), prompts_get=[asks, waits, SAID])
    servers = Servers(box)
    servers["box"].requests = Yes()
    await Prompts(servers, allowed_requests()).get("mcp__box__greet")

    call = {"name": "greet", "arguments": {}}
    asked = [as_sent(params) for method, params in box.asked if method == "prompts/get"]
    assert asked == [
        call,
        {**call, "inputResponses": {"a": {"action": "accept"}}, "requestState": "first"},
        {**call, "requestState": "second"},
    ]


def as_sent(params: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(params))


class Yes:
    async def answer(self, method: str, params: Any, context: Any) -> dict[str, Any]:
        return {"action": "accept"}


VALUES = {"completion": {"values": ["divan"]}}


async def suggestions(box: Session, completions: bool = True, given: Any = None) -> Any:
    servers = Servers(box)
    if completions:
        servers.capabilities["completions"] = {}
    return await Prompts(servers, allowed_requests()).complete("mcp__box__review", "book", "d", given=given)


async def test_completions_are_requested_with_the_known_arguments():
    box = Session("box", prompts_list=listing(REVIEW), completion_complete=VALUES)

    assert (await suggestions(box, given={"tone": "kind"})).values == ("divan",)
    assert box.asked[-1][1] == {
        "ref": {"type": "ref/prompt", "name": "review"},
        "argument": {"name": "book", "value": "d"},
        "context": {"arguments": {"tone": "kind"}},
    }


async def test_completion_is_not_requested_without_the_capability_except_in_the_first_revision():
    box = Session("box", prompts_list=listing(REVIEW), completion_complete=VALUES)
    assert (await suggestions(box, completions=False)).values == ()
    assert len(box.asked) == 1
    box.driver.revision = "2024-11-05"
    assert (await suggestions(box, completions=False, given={"tone": "kind"})).values == ("divan",)
    assert "context" not in box.asked[-1][1], "that revision has none"


async def test_a_refused_completion_is_empty_and_a_failed_one_is_an_error():
    box = Session("box", prompts_list=listing(REVIEW), completion_complete=RemoteError("box", -32601, "no"))
    assert (await suggestions(box)).values == ()
    box = Session("box", prompts_list=listing(REVIEW), completion_complete=CallTimeout("box", "x", 1))
    with pytest.raises(CallTimeout):
        await suggestions(box)
