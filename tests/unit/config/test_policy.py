"""Policy: lists put together, and verdicts with reasons."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from dragoman.config.policy import Policy, PolicySubject, judge
from dragoman.config.policy_files import PolicyPart, gather
from dragoman.urls import parse_url

HTTP = PolicySubject(name="box", scope="user", transport="http", url=parse_url("https://box.example.com/mcp"))
STDIO = PolicySubject(
    name="box", scope="user", transport="stdio", command=("npx", "box"), executable="/usr/bin/npx"
)
INSIDE = PolicySubject(name="box", scope="dynamic", transport="in-process")
EVERYONE = [HTTP, STDIO, INSIDE]


def managed(**said: Any) -> PolicyPart:
    return PolicyPart(scope="enterprise", source="/etc/managed.json", **said)


def own(**said: Any) -> PolicyPart:
    return PolicyPart(scope="user", source="/home/settings.json", **said)


def admitted(policy: Policy) -> list[str]:
    return [subject.transport for subject in EVERYONE if judge(policy, subject).allowed]


ALL = ["http", "stdio", "in-process"]


@pytest.mark.requirement("CFG-7")
def test_without_lists_everything_is_admitted():
    assert admitted(gather([])) == ALL
    assert admitted(gather([managed(), own()])) == ALL
    assert judge(gather([]), HTTP).reason == "no allow list restricts servers"


@pytest.mark.requirement("CFG-7")
def test_an_empty_allow_list_admits_nothing():
    policy = gather([own(allowed=[])])
    assert admitted(policy) == []
    assert policy.problems == ()


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"serverName": "box"}], ALL),
        ([{"serverName": "b*"}], ALL),
        ([{"serverName": "box"}, {"serverUrl": "https://other.com"}], ["stdio", "in-process"]),
        ([{"serverName": "box"}, {"serverCommand": ["other"]}], ["http", "in-process"]),
        ([{"serverName": "box"}, {"serverUrl": "*"}, {"serverCommand": ["x"]}], ["http", "in-process"]),
        ([{"serverUrl": "https://box.example.com/*"}], ["http"]),
        ([{"serverCommand": ["npx", "box"]}], ["stdio"]),
        # an entry that cannot be understood restricts as much as one that can
        ([{"serverName": "box"}, {"serverUrl": "nonsense"}], ["stdio", "in-process"]),
        ([{"serverName": "box"}, {"serverUrl": 7}], ["stdio", "in-process"]),
        ([{"serverName": "box"}, {"serverURL": "https://x"}], ["stdio", "in-process"]),
        ([{"serverName": "box"}, {"serverCommand": "npx"}], ["http", "in-process"]),
        ([{"serverName": "box"}, {"serverCommand": []}], ["http", "in-process"]),
        ([{"serverName": "box"}, {"serverName": "x", "serverUrl": "https://x"}], ["stdio", "in-process"]),
        # … and admits nothing
        ([{"serverUrl": "*", "serverName": "*"}], []),
        ([{"serverName": 7}, {"serverName": ""}, "box", None, 7, ["box"], {}], []),
        ([{"name": "box"}], []),
    ],
)
def test_what_an_allow_list_admits(entries: list[Any], expected: list[str]):
    assert admitted(gather([managed(allowed=entries)])) == expected


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "transport", ["http", "sse", "ws", "sse-ide", "ws-ide", "claudeai-proxy", "unusable"]
)
def test_a_remote_server_without_a_url_is_not_admitted_under_url_rules(transport: str):
    subject = PolicySubject(name="box", scope="connectors", transport=transport)
    assert judge(gather([managed(allowed=[{"serverName": "box"}])]), subject).allowed
    assert not judge(gather([managed(allowed=[{"serverName": "box"}, {"serverUrl": "*"}])]), subject).allowed


@pytest.mark.requirement("CFG-7")
def test_the_lists_of_administrator_and_person_are_joined():
    policy = gather([own(allowed=[{"serverCommand": ["npx", "box"]}]), managed(allowed=[{"serverUrl": "*"}])])
    assert admitted(policy) == ["http", "stdio"]


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("flag", "expected"),
    [(True, ["http"]), (False, ["http", "stdio"]), (UNSET, ["http", "stdio"])]
    + [(wrong, ["http"]) for wrong in ("false", 0, 1, None, [], {})],
)
def test_with_managed_only_the_persons_list_does_not_count(flag: Any, expected: list[str]):
    parts = [
        own(allowed=[{"serverCommand": ["npx", "box"]}]),
        managed(allowed=[{"serverUrl": "*"}], managed_only=flag),
    ]
    policy = gather(parts)
    assert admitted(policy) == expected
    assert bool(policy.problems) is not (flag is UNSET or isinstance(flag, bool))


@pytest.mark.requirement("CFG-7")
def test_managed_only_without_a_managed_list_restricts_nothing_and_is_reported():
    policy = gather([own(allowed=[]), managed(managed_only=True)])
    assert admitted(policy) == ALL
    assert "no server is restricted" in policy.problems[0]


@pytest.mark.requirement("CFG-7")
def test_managed_only_applies_only_from_the_administrator():
    policy = gather([own(allowed=[{"serverName": "box"}], managed_only=True), managed(allowed=[])])
    assert admitted(policy) == ALL
    assert "/home/settings.json" in policy.problems[0]


@pytest.mark.requirement("CFG-7")
def test_a_managed_file_that_cannot_be_read_refuses_everything():
    policy = gather([own(allowed=[{"serverName": "*"}])], broken="line 3: expected a comma\x1b[2J")
    for subject in EVERYONE:
        verdict = judge(policy, subject)
        assert not verdict.allowed
        assert "line 3" in verdict.reason
        assert "\x1b" not in verdict.reason
    assert admitted(gather([], broken="")) == []


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize("wrong", [None, "box", 7, True, {"serverName": "box"}])
def test_a_list_of_the_wrong_type_fails_closed(wrong: Any):
    allow = gather([managed(allowed=wrong)])
    assert admitted(allow) == []
    assert "allowedMcpServers: not a list" in allow.problems[0]
    deny = gather([managed(allowed=[{"serverName": "*"}]), own(denied=wrong)])
    assert admitted(deny) == []
    assert "deniedMcpServers: not a list" in deny.problems[0]
    assert judge(deny, HTTP).reason == (
        "denied by deniedMcpServers, which is not a list, in /home/settings.json"
    )


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"serverNam": "x"}, "serverNam is none of"),
        ({"serverName": "x", "serverUrl": "https://x"}, "exactly one"),
        ({}, "exactly one"),
        ("x", "not an object"),
        (None, "not an object"),
        ({"serverName": 7}, "serverName is not a text"),
        ({"serverName": ""}, "serverName is not a text"),
        ({"serverUrl": ["https://x"]}, "serverUrl is not a text"),
        ({"serverUrl": "https://s3cret:s3cret@x"}, "user name or password"),
        ({"serverUrl": "s3cret"}, "scheme"),
        ({"serverCommand": "npx"}, "list of words"),
        ({"serverCommand": []}, "list of words"),
        ({"serverCommand": [""]}, "list of words"),
        ({"serverCommand": ["npx", 7]}, "list of words"),
    ],
)
def test_one_wrong_entry_is_reported_with_its_position_and_the_others_apply(entry: Any, words: str):
    good = {"serverName": "box"}
    deny = gather([managed(denied=[{"serverName": "other"}, entry, good])])
    assert admitted(deny) == []
    allow = gather([managed(allowed=[{"serverName": "other"}, entry, good])])
    assert "in-process" in admitted(allow)
    told = [(allow, "allowedMcpServers")]
    if entry != "x":  # a text in a deny list denies the server of that name
        told.append((deny, "deniedMcpServers"))
    for policy, field in told:
        (problem,) = policy.problems
        assert problem.startswith(f"/etc/managed.json: {field}[1]: ")
        assert words in problem
        assert "s3cret" not in problem


@pytest.mark.requirement("CFG-7")
@pytest.mark.parametrize(
    "entry",
    [
        {"serverName": "${NAME}"},
        {"serverName": "box${NAME:-}"},
        {"serverUrl": "https://${HOST}/*"},
        {"serverUrl": "https://${HOST:-box.example.com}/mcp"},
        {"serverUrl": "https://box.example.com${REST}"},
        {"serverUrl": "${URL}"},
        {"serverUrl": "${BASE}/mcp"},
        {"serverUrl": "${SUB}.example.com"},
        {"serverUrl": "http${S}://box.example.com"},
        {"serverUrl": "https://box.example.com:${PORT:-443}/"},
        {"serverUrl": "https://box.example.com:4${P}/"},
        {"serverUrl": "https://box.example.com/${UNCLOSED"},
        {"serverCommand": ["${TOOL}", "box"]},
        {"serverCommand": ["npx", "b${REST}"]},
    ],
)
def test_a_variable_in_policy_admits_nothing_and_denies_every_possible_value(
    entry: Any, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NAME", "box")
    monkeypatch.setenv("HOST", "box.example.com")
    allow = gather([managed(allowed=[entry])])
    assert admitted(allow) == []
    assert "allowedMcpServers[0]: variables are not expanded" in allow.problems[0]
    deny = gather([managed(denied=[entry])])
    assert deny.problems == ()
    assert admitted(deny) != ALL


@pytest.mark.parametrize(
    ("said", "subject", "reason"),
    [
        ({"denied": [{"serverName": "box"}]}, HTTP, 'denied by serverName "box" in /etc/managed.json'),
        (
            {"denied": [{"serverUrl": "https://*.example.com/*"}]},
            HTTP,
            'denied by serverUrl "https://*.example.com/*" in /etc/managed.json',
        ),
        (
            {"denied": [{"serverCommand": ["npx", "*"]}]},
            STDIO,
            'denied by serverCommand ["npx", "*"] in /etc/managed.json',
        ),
        ({"denied": [{"serverName": "${X}"}]}, HTTP, 'denied by serverName "${X}" in /etc/managed.json'),
        ({"allowed": [{"serverName": "box"}]}, INSIDE, 'allowed by serverName "box" in /etc/managed.json'),
        ({"allowed": []}, HTTP, "the allow list admits nothing"),
        ({"allowed": [{"serverName": "other"}]}, HTTP, "nothing in the allow list matches"),
        (
            {"allowed": [{"serverName": "box"}, {"serverUrl": "https://x"}]},
            HTTP,
            "no serverUrl of the allow list matches, and names admit no remote server beside one",
        ),
        (
            {"allowed": [{"serverName": "box"}, {"serverCommand": ["x"]}]},
            STDIO,
            "no serverCommand of the allow list matches, and names admit no stdio server beside one",
        ),
    ],
)
def test_every_verdict_has_a_reason_and_the_rule_that_decided(
    said: dict[str, Any], subject: PolicySubject, reason: str
):
    verdict = judge(gather([managed(**said)]), subject)
    assert verdict.reason == reason
    assert (verdict.rule is not None) == (" by " in reason)


@pytest.mark.requirement("CFG-7")
def test_a_deny_by_url_applies_to_every_port_and_an_allow_to_the_default_one():
    odd = PolicySubject(
        name="box", scope="user", transport="http", url=parse_url("https://box.example.com:8443/")
    )
    entry = {"serverUrl": "https://box.example.com"}
    assert not judge(gather([managed(denied=[entry])]), odd).allowed
    assert not judge(gather([managed(allowed=[entry])]), odd).allowed
    assert judge(gather([managed(allowed=[{"serverUrl": "https://box.example.com:*"}])]), odd).allowed


def test_the_repr_of_a_subject_does_not_show_arguments():
    subject = PolicySubject(name="box", scope="user", transport="stdio", command=("npx", "--token=s3cret"))
    assert "s3cret" not in repr(subject)


def test_texts_of_files_contain_no_terminal_sequences():
    policy = gather([managed(denied=[{"serverName": "*\x1b[2J"}, {"\x1b[2J": 1}])])
    verdict = judge(policy, PolicySubject(name="a\x1b[2J", scope="user", transport="in-process"))
    assert not verdict.allowed
    assert "\x1b" not in verdict.reason
    assert "\x1b" not in "".join(policy.problems)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["serverName", "${", "https://*"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["serverName", "serverUrl", "serverCommand"]) | st.text(), inner, max_size=2
        )
    ),
    max_leaves=8,
)
SAID = JSON | st.lists(JSON, max_size=4) | st.just(UNSET)


@given(
    st.lists(st.tuples(st.sampled_from(["enterprise", "user", "project", "?"]), SAID, SAID, SAID), max_size=3)
)
def test_no_content_of_a_file_makes_policy_raise(files: list[tuple[str, Any, Any, Any]]):
    policy = gather(
        PolicyPart(scope=scope, source="f", allowed=allowed, denied=denied, managed_only=flag)
        for scope, allowed, denied, flag in files
    )
    for subject in EVERYONE:
        assert judge(policy, subject).reason
