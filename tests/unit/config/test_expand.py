"""Variables in entries."""

import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.expand import expand_entry, variables_in
from dragoman.errors import ConfigError
from tests.cpu_time import shortest

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
def test_written_variables_and_their_expansion(written: object, meant: object):
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
def test_a_missing_variable_is_reported_with_server_and_field_and_without_values(
    entry: dict[str, Any], words: list[str]
):
    with pytest.raises(ConfigError) as caught:
        expand_entry("box", entry, ENVIRON)
    assert all(word in str(caught.value) for word in words)
    assert caught.value.hint
    assert "t0ken" not in f"{caught.value} {caught.value.hint}"


@given(st.text().filter(lambda text: "${" not in text), st.text(), st.text(max_size=5))
def test_a_value_is_inserted_unchanged_between_other_text(around: str, value: str, after: str):
    after = after.replace("${", "")
    entry = expand_entry("box", {"f": f"{around}|${{V}}|{after}"}, {"V": value})
    assert entry["f"] == f"{around}|{value}|{after}"


SHELLISH = st.text(alphabet="$" + "{}" + "()`:-+%#!=?/ \\\"'AB_1;|&<>*~\n\0env", max_size=30)
ENTRIES = st.recursive(
    SHELLISH | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SHELLISH, inner, max_size=3),
    max_leaves=6,
)
ENVIRONS = st.dictionaries(st.sampled_from(["A", "B", "AB", "_", "A1"]), SHELLISH)


def model(text: str, environ: dict[str, str]) -> str | None:
    """The rules once more, one character after another; None: an error."""
    done = ""
    while text:
        found = re.match(r"\$\{(?:env:)?([A-Za-z_]\w*)(:-)?", text, re.ASCII)
        end = text.find("}")
        if found and end >= 0 and (found.group(2) or found.end() == end):
            default = text[found.end() : end] if found.group(2) else None
            value = environ.get(found.group(1))
            if (default is not None and "${" in default) or (value is None and default is None):
                return None
            done, text = done + (value or default or ""), text[end + 1 :]
        else:
            done, text = done + text[0], text[1:]
    return done


@pytest.mark.requirement("CFG-4")
@given(SHELLISH, ENVIRONS)
def test_any_text_is_expanded_as_by_the_reference_model_and_not_as_by_a_shell(
    text: str, environ: dict[str, str]
):
    try:
        meant = expand_entry("box", {"f": text}, environ)["f"]
    except ConfigError:
        meant = None
    assert meant == model(text, environ)


def failure(entry: dict[str, Any], environ: dict[str, str]) -> ConfigError | None:
    try:
        expand_entry("box", entry, environ)
    except ConfigError as error:
        return error
    return None


@given(st.dictionaries(SHELLISH, ENTRIES, max_size=4), ENVIRONS)
def test_expansion_raises_only_config_errors(entry: dict[str, Any], environ: dict[str, str]):
    error = failure(entry, environ)
    assert error is None or "'box'" in str(error)
    if error is None:
        assert expand_entry("box", entry, environ).keys() == entry.keys()


@given(st.dictionaries(SHELLISH, ENTRIES, max_size=4))
def test_a_text_without_variables_is_unchanged(entry: dict[str, Any]):
    without = {key: value for key, value in entry.items() if "${" not in repr(value)}
    assert expand_entry("box", without, {}) == without


@given(st.dictionaries(SHELLISH, ENTRIES, max_size=4))
def test_the_listed_variables_are_exactly_the_required_ones(entry: dict[str, Any]):
    needed = variables_in(entry)
    error = failure(entry, dict.fromkeys(needed, "x"))
    assert error is None or "default" in str(error)
    for missing in needed:
        assert failure(entry, dict.fromkeys(needed - {missing}, "x"))


# --- hostile text ---


def seconds(text: str) -> float:
    begin = time.process_time()
    try:
        expand_entry("box", {"f": text}, {"A": "x"})
    except ConfigError:
        pass
    variables_in(text)
    return time.process_time() - begin


@pytest.mark.parametrize(
    "piece", ["${", "${A", "${A:-", "${A:-}", "${A}", "$", "}", "${A:-x}${", "${env:", "{A:-"]
)
@pytest.mark.parametrize(("before", "after"), [("", ""), ("}", ""), ("", "}"), ("${A:-", ""), ("${", "}")])
def test_hostile_text_is_expanded_in_linear_time(before: str, piece: str, after: str):
    small, large = before + piece * 1_000 + after, before + piece * 4_000 + after
    bound = max(0.1, 9 * shortest(lambda: seconds(small)))
    assert shortest(lambda: seconds(large), below=bound) < bound
