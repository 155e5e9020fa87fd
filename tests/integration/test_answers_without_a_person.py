"""A host without a person: hooks answer forms, and a form without an answer ends in a clear outcome."""

import json
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import ConfigError, HostClosed, HostNotOpen, InputUnavailable, NotConnected, UnknownTool
from dragoman.hooks.declared import hook
from tests.servers import stdio_server

ERAS = ["2025-11-25", "2026-07-28"]
NAME = "mcp__asker__greet"


def host(revision: str, **options: Any) -> Host:
    entry = stdio_server("asks_for_a_name.py", protocol=revision, roots=False)
    return Host({"asker": entry}, permission_mode="bypassPermissions", **options)


async def answered(host: Host, **arguments: Any) -> Any:
    await host.ready(timeout=20)
    return json.loads((await host.call(NAME, arguments)).text)


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("revision", ERAS)
async def test_a_hook_answers_a_form_without_an_interaction(revision: str):
    answers = hook(
        lambda given: {
            "hookSpecificOutput": {
                "hookEventName": "Elicitation",
                "action": "accept",
                "content": {"name": given["message"]},
            }
        },
        "Elicitation",
    )
    async with host(revision, hooks=[answers]) as open_host:
        assert await answered(open_host, declared=True) == {"elicitation": {"form": {}, "url": {}}}
        assert await answered(open_host) == {"action": "accept", "content": {"name": "Your name?"}}


@pytest.mark.parametrize("revision", ERAS)
async def test_a_form_that_no_hook_answers_is_declined(revision: str):
    async with host(revision, hooks=[hook(lambda _: None, "Elicitation")]) as open_host:
        assert await answered(open_host) == {"action": "decline"}


@pytest.mark.parametrize("revision", ERAS)
async def test_a_hook_for_one_server_declares_forms_only_to_that_server(revision: str):
    other = hook(lambda _: None, "Elicitation", matcher="another")
    async with host(revision, hooks=[other]) as open_host:
        assert await answered(open_host, declared=True) == {}


async def test_input_required_without_an_interaction_is_an_outcome_that_states_it():
    async with host("2026-07-28") as open_host:
        await open_host.ready(timeout=20)
        outcome = await open_host.call(NAME)
    assert outcome.is_error
    assert isinstance(outcome.error, InputUnavailable)
    assert outcome.text == (
        "asker asks for input (elicitation/create) before it answers: this client does not offer "
        "elicitation/create. Run it where a person can answer, or answer it with an `Elicitation` hook."
    )


# --- tools of servers that are not connected ---


async def test_a_call_waits_for_a_server_that_is_still_connecting():
    async with host("2025-11-25") as open_host:  # nothing is waited for
        assert json.loads((await open_host.call(NAME, {"declared": True})).text) == {}


async def test_a_tool_of_a_failed_server_is_reported_with_the_state_of_the_server():
    async with Host({"gone": {"command": "/no/such/program"}}, permission_mode="bypassPermissions") as h:
        await h.ready(timeout=20)
        with pytest.raises(NotConnected) as caught:
            await h.call("mcp__gone__read")
    assert (caught.value.server, caught.value.status) == ("gone", "failed")
    assert "/no/such/program" in str(caught.value)


async def test_an_unknown_tool_of_a_connected_server_is_unknown():
    async with host("2025-11-25") as open_host:
        await open_host.ready(timeout=20)
        outcome = await open_host.call("mcp__asker__grete")
    assert isinstance(outcome.error, UnknownTool)
    assert (
        outcome.text
        == "there is no tool named mcp__asker__grete. Did you mean mcp__asker__greet, mcp__asker__echo?"
    )


# --- mistakes in programs ---


def test_a_plain_function_is_not_a_hook_and_the_error_states_how_to_make_one():
    def audit(given: object) -> None:
        return None

    with pytest.raises(ConfigError) as caught:
        Host({}, hooks=[audit])  # type: ignore[list-item]
    assert str(caught.value) == "hooks: audit is not a hook"
    assert caught.value.hint is not None
    assert 'hook(function, "PreToolUse")' in caught.value.hint


async def test_a_host_that_was_never_entered_is_not_called_closed():
    unopened = Host({})
    with pytest.raises(HostNotOpen, match="not open yet"):
        await unopened.call("mcp__a__b")
    async with unopened:
        pass
    with pytest.raises(HostClosed):
        await unopened.call("mcp__a__b")
