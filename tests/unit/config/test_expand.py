"""Variables in entries."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.expand import expand_entry
from dragoman.errors import ConfigError

ENVIRON = {"TOKEN": "t0ken", "EMPTY": "", "ODD": "a b\n$x ${TOKEN} %s", "_x1": "low"}


def expand(value: Any) -> Any:
    return expand_entry("box", {"field": value}, ENVIRON)["field"]


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${TOKEN}", "t0ken"),
        ("a${TOKEN}b${_x1}c", "at0kenblowc"),
        ("${MISSING:-spare}", "spare"),
        ("${MISSING:-}", ""),
        ("${TOKEN:-spare}", "t0ken"),
        ("${EMPTY:-spare}", "spare"),
        ("${EMPTY}", ""),
        ("${MISSING:-a:-b}", "a:-b"),
        ("${ODD}", ENVIRON["ODD"]),  # not expanded twice, not split, not formatted
        # no shell semantics:
        ("$TOKEN", "$TOKEN"),
        ("${TOKEN%n}", "${TOKEN%n}"),
        ("${TOKEN:+x}", "${TOKEN:+x}"),
        ("${}", "${}"),
        ("${1}", "${1}"),
        ("$(id)", "$(id)"),
        ("`id`", "`id`"),
        ("${TOKEN", "${TOKEN"),
        (7, 7),
        (None, None),
        (True, True),
    ],
)
def test_what_is_written_and_what_is_meant(written: object, meant: object):
    assert expand(written) == meant


@pytest.mark.requirement("CFG-4")
def test_every_string_field_is_expanded_at_any_depth_and_keys_are_not():
    entry = {
        "command": "${TOKEN}",
        "args": ["-t", "${TOKEN}", ["${_x1}"]],
        "env": {"${TOKEN}": "${TOKEN}"},
        "url": "https://x/${TOKEN}",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
        "oauth": {"xaa": {"clientId": "${_x1}"}},
    }
    assert expand_entry("box", entry, ENVIRON) == {
        "command": "t0ken",
        "args": ["-t", "t0ken", ["low"]],
        "env": {"${TOKEN}": "t0ken"},
        "url": "https://x/t0ken",
        "headers": {"Authorization": "Bearer t0ken"},
        "oauth": {"xaa": {"clientId": "low"}},
    }


@pytest.mark.requirement("CFG-4")
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"command": "${MISSING}"}, ["'box'", "command", "MISSING"]),
        ({"args": ["a", "${MISSING}"]}, ["args[1]", "MISSING"]),
        ({"env": {"A": "${TOKEN}${MISSING}"}}, ["env.A", "MISSING"]),
        ({"command": "${TOKEN:-${_x1}}"}, ["command", "TOKEN", "default"]),
    ],
)
def test_a_missing_variable_is_named_with_server_and_field_and_no_value_is_told(
    entry: dict[str, Any], words: list[str]
):
    with pytest.raises(ConfigError) as caught:
        expand_entry("box", entry, ENVIRON)
    assert all(word in str(caught.value) for word in words)
    assert caught.value.hint
    assert "t0ken" not in f"{caught.value} {caught.value.hint}"


@given(st.text().filter(lambda text: "${" not in text), st.text(), st.text(max_size=5))
def test_a_value_comes_through_unchanged_between_what_stands_around_it(around: str, value: str, after: str):
    after = after.replace("${", "")
    entry = expand_entry("box", {"f": f"{around}|${{V}}|{after}"}, {"V": value})
    assert entry["f"] == f"{around}|{value}|{after}"
