"""T53: Every combination of allow lists, deny lists and servers, compared with a reference model."""

from itertools import combinations, product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.config.policy import Policy, PolicySubject, judge
from dragoman.config.policy_files import PolicyPart, gather
from dragoman.urls import parse_url

Kinds = tuple[str, ...] | None  # the kinds of rules in a list; None: there is no list

ENTRIES: dict[str, dict[str, Any]] = {
    "name": {"serverName": "box"},
    "command": {"serverCommand": ["npx", "-y", "box"]},
    "url": {"serverUrl": "https://box.example.com/*"},
}
LISTS: list[Kinds] = [None, *(mix for size in range(4) for mix in combinations(ENTRIES, size))]
TRANSPORTS = {"stdio": "command", "http": "url", "sse": "url", "ws": "url", "in-process": None}
SCOPES = ("enterprise", "local", "project", "user", "plugin", "connectors", "dynamic")
# Whether a server has the listed name, and whether it has the listed command or address.
IDENTITIES = list(product((True, False), (True, False)))
Server = tuple[str, str, tuple[bool, bool]]
SERVERS: list[Server] = list(product(TRANSPORTS, SCOPES, IDENTITIES))


def reference(enterprise: Kinds, user: Kinds, denied: Kinds, managed_only: bool, server: Server) -> bool:
    transport, _scope, (named, placed) = server
    proper = TRANSPORTS[transport]  # the kind of rule that matches the actual transport
    touched: set[str | None] = set()
    if named:
        touched.add("name")
    if placed and proper:
        touched.add(proper)
    if touched & set(denied or ()):
        return False
    counted = [enterprise] if managed_only else [enterprise, user]
    lists = [each for each in counted if each is not None]
    if not lists:
        return True
    rules = {kind for each in lists for kind in each}
    if proper in rules:
        return proper in touched
    return bool(rules & touched)


def subject(server: Server) -> PolicySubject:
    transport, scope, (named, placed) = server
    kind = TRANSPORTS[transport]
    where = "box" if placed else "elsewhere"
    url = parse_url(f"https://{where}.example.com/mcp") if kind == "url" else None
    command = ("npx", "-y", where) if kind == "command" else None
    return PolicySubject(
        name="box" if named else "other",
        scope=scope,
        transport=transport,
        url=url,
        command=command,
        executable="/usr/bin/npx" if command else None,
        project="/home/me/project",
    )


SUBJECTS = [(server, subject(server)) for server in SERVERS]


def entries(kinds: Kinds) -> Any:
    return UNSET if kinds is None else [ENTRIES[kind] for kind in kinds]


def policy(
    enterprise: Kinds, user: Kinds, denied: Kinds, managed_only: Any = UNSET, deny_scope: str = "enterprise"
) -> Policy:
    return gather(
        [
            PolicyPart(scope="user", source="settings.json", allowed=entries(user)),
            PolicyPart(scope=deny_scope, source="deny.json", denied=entries(denied)),
            PolicyPart(
                scope="enterprise",
                source="managed.json",
                allowed=entries(enterprise),
                managed_only=managed_only,
            ),
        ]
    )


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("managed_only", [UNSET, False, True], ids=["unset", "shared", "managed-only"])
@pytest.mark.parametrize("denied", LISTS, ids=lambda kinds: "deny-" + "+".join(kinds or ["nothing"]))
def test_t53_every_combination_agrees_with_the_reference_model(denied: Kinds, managed_only: Any):
    for number, (enterprise, user) in enumerate(product(LISTS, LISTS)):
        merged = policy(enterprise, user, denied, managed_only, SCOPES[number % len(SCOPES)])
        for server, asked in SUBJECTS:
            verdict = judge(merged, asked)
            expected = reference(enterprise, user, denied, managed_only is True, server)
            assert verdict.allowed == expected, (
                enterprise,
                user,
                denied,
                managed_only,
                server,
                verdict.reason,
            )
            assert verdict.reason


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("kind", ENTRIES)
def test_t53_a_deny_of_any_scope_overrides_an_allow_of_any_kind(kind: str, scope: str):
    merged = policy(tuple(ENTRIES), tuple(ENTRIES), (kind,), deny_scope=scope)
    for server, asked in SUBJECTS:
        if kind in ("name", TRANSPORTS[server[0]]) and server[2] == (True, True):
            verdict = judge(merged, asked)
            assert not verdict.allowed
            assert verdict.rule in merged.denied


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("scope", [scope for scope in SCOPES if scope not in ("enterprise", "user")])
def test_t53_an_allow_list_of_a_project_or_plugin_is_ignored(scope: str):
    own = PolicyPart(scope="user", source="settings.json", allowed=[{"serverName": "mine"}])
    cloned = PolicyPart(scope=scope, source="cloned.json", allowed=list(ENTRIES.values()), managed_only=False)
    merged = gather([own, cloned])
    assert not any(judge(merged, asked).allowed for _, asked in SUBJECTS)
    assert any("cloned.json" in problem for problem in merged.problems)
    assert gather([cloned]).allowed is None


WORDS = st.sampled_from(["box", "other", "b*", "*", "npx", "-y", "/usr/bin/npx", "${X}"])
URLS = st.sampled_from(
    ["https://box.example.com", "https://*.example.com/*", "*", "http://x", "nonsense", "https://${X}/"]
)
ANY_ENTRY = st.one_of(
    WORDS.map(lambda word: {"serverName": word}),
    URLS.map(lambda url: {"serverUrl": url}),
    st.lists(WORDS, min_size=1, max_size=3).map(lambda words: {"serverCommand": words}),
    st.sampled_from(list(ENTRIES.values())),
)
ANY_LIST = st.lists(ANY_ENTRY, max_size=5)
ANY_SUBJECT = st.sampled_from([asked for _, asked in SUBJECTS])


def merged_from(allowed: Any, denied: Any) -> Policy:
    return gather([PolicyPart(scope="enterprise", source="managed.json", allowed=allowed, denied=denied)])


@given(ANY_LIST | st.just(UNSET), ANY_LIST, ANY_ENTRY, ANY_SUBJECT)
def test_t53_adding_a_deny_rule_never_admits_more(
    allowed: Any, denied: list[Any], added: Any, asked: PolicySubject
):
    if judge(merged_from(allowed, [*denied, added]), asked).allowed:
        assert judge(merged_from(allowed, denied), asked).allowed


@given(ANY_LIST | st.just(UNSET), ANY_LIST, ANY_SUBJECT)
def test_t53_a_server_denied_without_allow_rules_is_denied_with_any_allow_rules(
    allowed: Any, denied: list[Any], asked: PolicySubject
):
    if not judge(merged_from(UNSET, denied), asked).allowed:
        assert not judge(merged_from(allowed, denied), asked).allowed


@given(ANY_LIST, st.integers(0, 4), ANY_SUBJECT)
def test_t53_removing_an_allow_rule_never_admits_more(allowed: list[Any], which: int, asked: PolicySubject):
    fewer = [entry for number, entry in enumerate(allowed) if number != which]
    kinds = [{key for entry in entries for key in entry} - {"serverName"} for entries in (allowed, fewer)]
    if kinds[0] != kinds[1]:
        return  # removing the last serverUrl or serverCommand rule makes name rules apply again
    if judge(merged_from(fewer, UNSET), asked).allowed:
        assert judge(merged_from(allowed, UNSET), asked).allowed


@given(ANY_LIST, ANY_SUBJECT)
def test_t53_an_allow_list_never_admits_more_than_no_list(allowed: list[Any], asked: PolicySubject):
    assert judge(merged_from(UNSET, UNSET), asked).allowed
    verdict = judge(merged_from(allowed, UNSET), asked)
    assert not verdict.allowed or verdict.rule is not None
