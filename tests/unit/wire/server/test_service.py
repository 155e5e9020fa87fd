"""The capabilities follow from the handlers; errors have the code of the era."""

from typing import Any

import pytest

from dragoman.protocol import LEGACY_REVISIONS
from dragoman.wire.server import legacy, modern
from dragoman.wire.server.legacy import InitializeParams
from dragoman.wire.server.modern import WantedChanges
from dragoman.wire.server.service import RequestError, ResourceNotFound
from tests.unit.wire.server.talk import LEGACY, MODERN, echo, service

ALL = frozenset({"tools", "prompts", "resources"})


@pytest.mark.parametrize(
    ("methods", "list_changes", "capabilities"),
    [
        ([], ALL, {}),
        (["tools/list", "tools/call"], frozenset(), {"tools": {}}),
        (["tools/list"], ALL, {"tools": {"listChanged": True}}),
        (["resources/list", "resources/subscribe"], frozenset(), {"resources": {"subscribe": True}}),
        (
            ["resources/read", "prompts/get", "completion/complete", "logging/setLevel"],
            frozenset({"resources"}),
            {"resources": {"listChanged": True}, "prompts": {}, "completions": {}, "logging": {}},
        ),
        (["notifications/roots/list_changed"], ALL, {}),
    ],
)
def test_which_capabilities_are_declared(methods: list[str], list_changes: Any, capabilities: dict[str, Any]):
    served = service(dict.fromkeys(methods, echo), list_changes=list_changes)

    assert served.capabilities() == capabilities
    assert modern.discover(served)["capabilities"] == capabilities
    assert legacy.initialize(served, InitializeParams(LEGACY))[1]["capabilities"] == capabilities


def test_more_capabilities_can_be_declared():
    extensions = {"extensions": {"io.modelcontextprotocol/ui": {}}}

    assert service({"tools/list": echo}, more_capabilities=extensions).capabilities() == {
        "tools": {},
        **extensions,
    }


@pytest.mark.parametrize(
    ("ours", "wanted", "agreed"),
    [
        *((LEGACY_REVISIONS, revision, revision) for revision in LEGACY_REVISIONS),
        (LEGACY_REVISIONS, "2099-01-01", LEGACY),
        (LEGACY_REVISIONS, MODERN, LEGACY),
        (("2024-11-05", "2025-03-26"), LEGACY, "2025-03-26"),
        ((MODERN, "2024-11-05"), LEGACY, "2024-11-05"),
    ],
)
def test_the_revision_that_initialize_agrees_on(ours: tuple[str, ...], wanted: str, agreed: str):
    client, result = legacy.initialize(service(revisions=ours), InitializeParams(wanted))

    assert (client.revision, result["protocolVersion"]) == (agreed, agreed)
    assert not client.is_initialized


def test_initialize_is_refused_without_a_legacy_revision():
    with pytest.raises(RequestError) as caught:
        legacy.initialize(service(revisions=(MODERN,)), InitializeParams(LEGACY))
    assert caught.value.code_in("legacy") == -32022
    assert caught.value.data == {"supported": [MODERN], "requested": LEGACY}


def test_instructions_are_given_in_both_eras():
    served = service(instructions="Be brief.")

    assert modern.discover(served)["instructions"] == "Be brief."
    assert legacy.initialize(served, InitializeParams(LEGACY))[1]["instructions"] == "Be brief."
    assert "instructions" not in modern.discover(service())


@pytest.mark.parametrize(
    ("methods", "wanted", "honoured"),
    [
        (["tools/list"], WantedChanges(tools_list_changed=True), {"toolsListChanged": True}),
        (["tools/list"], WantedChanges(prompts_list_changed=True), {}),
        (["tools/list"], WantedChanges(), {}),
        (["resources/list"], WantedChanges(resource_subscriptions=["a:b"]), {}),
        (
            ["resources/subscribe"],
            WantedChanges(resource_subscriptions=["a:b", "a:c", "a:b"], resources_list_changed=True),
            {"resourceSubscriptions": ["a:b", "a:c"], "resourcesListChanged": True},
        ),
    ],
)
def test_which_part_of_a_subscription_is_accepted(
    methods: list[str], wanted: WantedChanges, honoured: dict[str, Any]
):
    assert modern.honoured(service(dict.fromkeys(methods, echo), list_changes=ALL), wanted) == honoured


def test_a_missing_resource_has_another_code_in_each_era():
    error = ResourceNotFound("a:b")

    assert (error.code_in("legacy"), error.code_in("modern")) == (-32002, -32602)
    assert error.data == {"uri": "a:b"}
