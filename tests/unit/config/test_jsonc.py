"""JSON text with places, and edits that leave everything else alone."""

import copy
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.jsonc import SyntaxProblem, locate, parse, remove, set_value
from dragoman.config.jsontree import DEPTH_LIMIT, scan
from tests.cpu_time import CpuTimer

# --- reading ---


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("", 1, 1, "the text is empty"),
        (" \n ", 2, 2, "the text is empty"),
        ("\ufeff{}", 1, 1, "byte-order mark"),
        ('{"a": 1,}', 1, 8, "trailing comma is not allowed in JSON"),
        ("[1, 2,\n]", 1, 6, "trailing comma is not allowed in JSON"),
        ("{\n  // why\n}", 2, 3, "comments are not allowed in JSON"),
        ('{"a": /* why */ 1}', 1, 7, "comments are not allowed in JSON"),
        ("{}\n# why", 2, 1, "comments are not allowed in JSON"),
        ('{"a": 1,\r\n "a": 2}', 2, 2, 'the key "a" is duplicated'),
        ('{"x": {"a": 1, "\\u0061": 2}}', 1, 16, 'the key "a" is duplicated'),
        ("[NaN]", 1, 2, "NaN and Infinity are not allowed"),
        ("[-Infinity]", 1, 2, "NaN and Infinity are not allowed"),
        ("[1e999]", 1, 2, "too large"),
        ("[" + "9" * 5000 + "]", 1, 2, "too large"),
        ("[01]", 1, 3, "a comma or ] was expected"),
        ("[+1]", 1, 2, "a value was expected"),
        ("[\u0663]", 1, 2, "a value was expected"),  # an Arabic digit
        ("nul", 1, 1, "a value was expected"),
        ("{'a': 1}", 1, 2, "a key in double quotes"),
        ("{a: 1}", 1, 2, "a key in double quotes"),
        ("{\"a\": 'b'}", 1, 7, "double quotes"),
        ('{"a" 1}', 1, 6, "a colon was expected"),
        ('{"a": 1 "b": 2}', 1, 9, "a comma or } was expected"),
        ('{"a": {\n"b": 1', 2, 7, "ends before the object begun in line 1"),
        ('{"a":\n[1,', 2, 4, "ends before the list begun in line 2"),
        ('{"a": "b', 1, 7, "ends inside the string that begins here"),
        ('{"a": "b\n"}', 1, 7, "not closed in its line"),
        ('["a\tb"]', 1, 4, "control character"),
        ('["a\\x"]', 1, 4, "escape sequence"),
        ('["\\u12"]', 1, 3, "escape sequence"),
        ("{}{}", 1, 3, "more text after the end"),
        ("\0\0\0", 1, 1, "NUL"),
        ('{"a": 1}\0', 1, 9, "more text after the end"),
        ("[" * 100_000, 1, DEPTH_LIMIT + 1, "nest more than"),
        ('{"a":' * 100_000, 1, 5 * DEPTH_LIMIT + 1, "nest more than"),
    ],
)
def test_a_syntax_error_is_reported_with_its_position(text: str, line: int, column: int, words: str):
    with pytest.raises(SyntaxProblem) as caught:
        parse(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in caught.value.reason
    assert caught.value.reason in str(caught.value)


def test_nesting_is_limited_to_the_same_depth_with_and_without_comments():
    deepest = "[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT
    assert parse(deepest) == parse(deepest, comments=True)
    for comments in (False, True):
        with pytest.raises(SyntaxProblem):
            parse(f"[{deepest}]", comments=comments)


@pytest.mark.parametrize(
    ("text", "words"), [("{/* never closed", "not closed"), ("[1] # no", "begin with //"), ("{/", "a key")]
)
def test_json_with_comments_has_syntax_errors_too(text: str, words: str):
    with pytest.raises(SyntaxProblem, match=words):
        parse(text, comments=True)


def test_a_reason_quotes_only_a_cleaned_key():
    for text in ('{"s3cret": "s3cret" s3cret', '["s3cret', "[s3cret]", "s3cret", '["\\s3cret"]'):
        with pytest.raises(SyntaxProblem) as caught:
            parse(text)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(SyntaxProblem) as caught:
        parse('{"\\u001b[2J": 1, "\\u001b[2J": 1}')
    assert "\x1b" not in str(caught.value)
    with pytest.raises(SyntaxProblem) as caught:
        parse(json.dumps({"k" * 100_000: 1})[:-1] + "," + json.dumps({"k" * 100_000: 1})[1:])
    assert len(str(caught.value)) < 300


def test_comments_and_trailing_commas_are_read_when_they_are_allowed():
    text = '\ufeff// top\n{"a": [1, /* two */ 2,], // "b": 3\n "url": "http://x/*y*/",\n}\n/** end **/'
    assert parse(text, comments=True) == {"a": [1, 2], "url": "http://x/*y*/"}


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(JSON_VALUES, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_every_value_is_read_back_as_it_was_written(value: Any, indent: Any, ascii_only: bool):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert parse(text) == value
    assert parse(text, comments=True) == value


FRAGMENTS = st.sampled_from(
    [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        '"a"',
        '"b"',
        "1",
        "-0",
        "2.5e3",
        "null",
        "true",
        " ",
        "\n",
        '"',
        "\\",
        "/",
    ]
)


@given(st.lists(FRAGMENTS, max_size=12).map("".join) | st.text(max_size=12))
def test_the_fast_parser_and_the_exact_parser_agree_on_every_text(text: str):
    def outcome(read: Any) -> Any:
        try:
            return repr(read())
        except SyntaxProblem as problem:
            return problem.args

    assert outcome(lambda: parse(text)) == outcome(lambda: scan(text, comments=False).root.value)


def test_two_hundred_servers_are_parsed_quickly():
    servers = {f"s{n}": {"command": "x", "args": ["a", "b"], "env": {"A": "1"}} for n in range(200)}
    text = json.dumps({"mcpServers": servers}, indent=2)
    best = min(_seconds(parse, text) for _ in range(5))
    assert best < 0.005


@pytest.mark.parametrize("comments", [False, True])
@pytest.mark.parametrize(
    "text", ["[" + "1," * 50_000, '"' + "\\" * 400_000, "/*" * 200_000, "{" + " " * 400_000 + "x"]
)
def test_hostile_texts_are_refused_in_linear_time(text: str, comments: bool):
    started = CpuTimer()
    with pytest.raises(SyntaxProblem):
        parse(text, comments=comments)
    assert started.seconds() < 5


def _seconds(function: Any, *arguments: Any) -> float:
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


# --- finding ---

PLACED = '{\n  "a": [1, {"b": 2}],\r\n  // note\n  "c": null\n}'


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ([], (1, 1)),
        (["a"], (2, 3)),
        (["a", 0], (2, 9)),
        (["a", 1], (2, 12)),
        (["a", 1, "b"], (2, 13)),
        (["c"], (4, 3)),
        (["x"], None),
        (["a", 2], None),
        (["a", "0"], None),
        (["c", "x"], None),
        (["a", 1, 0], None),
    ],
)
def test_the_position_of_a_member_is_that_of_its_key(path: list[str | int], place: tuple[int, int] | None):
    assert locate(PLACED, path) == place


def test_in_an_unreadable_text_nothing_is_found():
    assert locate('{"a": 1', ["a"]) is None


# --- changing ---

SERVERS = """{
  "numStartups": 7,
  "mcpServers": {
    "a": {"command": "x"},
    "b": {
      "command": "y"
    }
  },
  "other": [1,2,   3]
}
"""


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    ("path", "value", "old", "new"),
    [
        (["numStartups"], 8, '"numStartups": 7', '"numStartups": 8'),
        (["numStartups"], None, '"numStartups": 7', '"numStartups": null'),
        (["other"], [], "[1,2,   3]", "[]"),
        (["mcpServers", "a", "command"], "z", '{"command": "x"}', '{"command": "z"}'),
        (["mcpServers", "a"], {"command": "x", "n": 1}, '{"command": "x"}', '{"command": "x", "n": 1}'),
        (["mcpServers", "a", "args"], ["1"], '{"command": "x"}', '{"command": "x", "args": ["1"]}'),
        (
            ["mcpServers", "b", "env", "K"],
            "v",
            '"command": "y"\n',
            '"command": "y",\n      "env": {\n        "K": "v"\n      }\n',
        ),
        (
            ["mcpServers", "c"],
            {"args": ["-y", "pkg"], "env": {}},
            '"y"\n    }\n',
            '"y"\n    },\n    "c": {\n      "args": ["-y", "pkg"],\n      "env": {}\n    }\n',
        ),
        (["last"], 1.5, "   3]\n", '   3],\n  "last": 1.5\n'),
    ],
)
def test_setting_a_value_changes_nothing_else(path: list[str], value: Any, old: str, new: str):
    assert SERVERS.count(old) == 1
    assert set_value(SERVERS, path, value) == SERVERS.replace(old, new)


@pytest.mark.requirement("CFG-10")
@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        (["numStartups"], '  "numStartups": 7,\n', ""),
        (["mcpServers", "a"], '    "a": {"command": "x"},\n', ""),
        (["mcpServers", "b"], '"x"},\n    "b": {\n      "command": "y"\n    }\n', '"x"}\n'),
        (["mcpServers", "a", "command"], '{"command": "x"}', "{}"),
        (["mcpServers", "b", "command"], '{\n      "command": "y"\n    }', "{}"),
        (["other"], '  },\n  "other": [1,2,   3]\n', "  }\n"),
        (["absent"], "", ""),
        (["numStartups", "absent"], "", ""),
        (["other", "0"], "", ""),
    ],
)
def test_removing_a_member_removes_its_comma_and_its_line(path: list[str], old: str, new: str):
    assert remove(SERVERS, path) == SERVERS.replace(old, new, 1)


@pytest.mark.parametrize(
    ("text", "path", "after"),
    [
        ('{"a": 1, "b": 2, "c": 3}', ["a"], '{"b": 2, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', ["b"], '{"a": 1, "c": 3}'),
        ('{"a": 1, "b": 2, "c": 3}', ["c"], '{"a": 1, "b": 2}'),
        ('{"a":1,"b":2}', ["b"], '{"a":1}'),
        ('{"a": 1, // one\n "b": 2}', ["b"], '{"a": 1 // one\n}'),
        ('{\n  "a": 1, // one\n  "b": 2 // two\n}', ["a"], '{\n  // one\n  "b": 2 // two\n}'),
        ('{\n  "a": 1 /* x */ ,\n  "b": 2\n}', ["a"], '{\n  /* x */ \n  "b": 2\n}'),
        ('{\n  // about a\n  "a": 1,\n}', ["a"], "{\n  // about a\n}"),
        ('{\n  "a": 1,\n  "b": {"x": 1 /* gone */},\n}', ["b"], '{\n  "a": 1,\n}'),
        ("", ["a"], ""),
        ("// nothing\n", ["a"], "// nothing\n"),
    ],
)
def test_removing_in_other_layouts(text: str, path: list[str], after: str):
    assert remove(text, path) == after


@pytest.mark.parametrize(
    ("text", "path", "value", "after"),
    [
        ("", ["a"], 1, '{\n  "a": 1\n}\n'),
        (" \n", ["a", "b"], 1, '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", ["a"], 1, '{\n  "a": 1\n}'),
        ("// mine", ["a"], 1, '// mine\n{\n  "a": 1\n}\n'),
        ("{\n\t// here\n}\n", ["a"], 1, '{\n\t// here\n  "a": 1\n}\n'),
        (
            '{\n\t"a": {}\n}\n',
            ["a", "b"],
            {"c": {}},
            '{\n\t"a": {\n\t\t"b": {\n\t\t\t"c": {}\n\t\t}\n\t}\n}\n',
        ),
        ('{\r\n    "a": 1\r\n}\r\n', ["b"], {"c": 1}, None),
        ('{\n  "a": 1 // one\n}', ["b"], 2, '{\n  "a": 1, // one\n  "b": 2\n}'),
        ('{\n  "a": 1, // one\n}', ["b"], 2, '{\n  "a": 1, // one\n  "b": 2,\n}'),
        ('{\n  "a": 1 /* { */ } // */\n', ["b"], 2, '{\n  "a": 1,\n  "b": 2 /* { */ } // */\n'),
        ('{"a": 1 // one\n}', ["b"], 2, '{"a": 1, "b": 2 // one\n}'),
        ('{"a": 1,}', ["b"], {"c": [1]}, '{"a": 1, "b": {"c": [1]},}'),
        ('{"a": [1, // one\n 2]}', ["a"], 3, '{"a": // one\n3}'),
        ('{"a": true}', ["a"], 1, '{"a": 1}'),
        ("[1]", [], {"a": 1}, '{\n  "a": 1\n}'),
    ],
)
def test_setting_in_other_layouts(text: str, path: list[str], value: Any, after: str | None):
    if after is None:
        after = '{\r\n    "a": 1,\r\n    "b": {\r\n        "c": 1\r\n    }\r\n}\r\n'
    assert set_value(text, path, value) == after


def test_an_object_is_changed_by_member_and_the_rest_keeps_its_format():
    text = '{"s": {\n  "command" : "x", // why x\n  "args": [ 1,2 ],\n  "env": {} // none\n}}'
    changed = set_value(text, ["s"], {"args": [1, 2], "command": "y", "url": "u"})
    assert changed == '{"s": {\n  "command" : "y", // why x\n  "args": [ 1,2 ],\n  // none\n  "url": "u"\n}}'


@pytest.mark.parametrize(
    ("text", "path", "place"), [("[1]", ["a"], (1, 1)), ('{"a":\n 5}', ["a", "b"], (2, 2))]
)
def test_a_value_that_is_not_an_object_is_not_replaced_by_one(
    text: str, path: list[str], place: tuple[int, int]
):
    with pytest.raises(SyntaxProblem, match="is not a") as caught:
        set_value(text, path, 1)
    assert (caught.value.line, caught.value.column) == place


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}])
def test_values_that_json_cannot_express_are_refused(value: Any):
    with pytest.raises((ValueError, TypeError)):
        set_value("{}", ["a"], value)


def test_a_lone_surrogate_is_written_as_an_escape():
    assert set_value("", ["a"], "\ud800").encode()
    assert parse(set_value("", ["a"], "\ud800")) == {"a": "\ud800"}


# --- properties of changes, over texts with comments wherever they may stand ---


@st.composite
def trivia(draw: st.DrawFn) -> str:
    kinds = st.sampled_from(["", "", " ", "\n", "\r\n  ", "\t", "/*C*/", " // C\n", "\n  // C\r\n"])
    return "".join(draw(st.lists(kinds, max_size=3)))


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """The value as a text with comments, blanks and trailing commas."""

    def gap() -> str:
        return draw(trivia())

    def enclosed(opening: str, parts: list[str], closing: str) -> str:
        last = "," + gap() if parts and draw(st.booleans()) else ""
        return opening + gap() + ("," + gap()).join(parts) + last + closing

    if isinstance(value, dict):
        members = [
            f"{json.dumps(key)}{gap()}:{gap()}{draw(written(item))}{gap()}" for key, item in value.items()
        ]
        return enclosed("{", members, "}")
    if isinstance(value, list):
        return enclosed("[", [draw(written(item)) + gap() for item in value], "]")
    return json.dumps(value)


KEYS = st.sampled_from(["a", "b", "//", 'q"'])
SMALL_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "/*", "//x", "}", '"']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, SMALL_VALUES, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    value = draw(OBJECTS)
    text = draw(trivia()) + draw(written(value)) + draw(trivia())
    for number in range(text.count("C")):
        text = text.replace("C", f"<{number}>", 1)
    return text, value


PATHS = st.lists(KEYS, min_size=1, max_size=3)


@pytest.mark.slow
@pytest.mark.requirement("CFG-10")
@given(documents(), PATHS, SMALL_VALUES)
def test_a_set_value_is_read_back_and_no_comment_is_lost(
    document: tuple[str, dict[str, Any]], path: list[str], value: Any
):
    text, before = document
    expected = copy.deepcopy(before)
    owner = expected
    for key in path[:-1]:
        owner = owner.setdefault(key, {})
        if not isinstance(owner, dict):
            with pytest.raises(SyntaxProblem):
                set_value(text, path, value)
            return
    owner[path[-1]] = value

    after = set_value(text, path, value)

    assert _exactly(parse(after, comments=True)) == _exactly(expected)
    assert _comments(after) == _comments(text)
    assert list(parse(after, comments=True))[: len(before)] == list(before)
    assert set_value(after, path, value) == after


@pytest.mark.slow
@pytest.mark.requirement("CFG-10")
@given(documents(), PATHS)
def test_only_the_removed_member_is_removed(document: tuple[str, dict[str, Any]], path: list[str]):
    text, before = document
    expected: Any = copy.deepcopy(before)
    owner: Any = expected
    for key in path[:-1]:
        owner = owner.get(key) if isinstance(owner, dict) else None
    if not isinstance(owner, dict) or path[-1] not in owner:
        assert remove(text, path) == text
        return
    del owner[path[-1]]

    after = remove(text, path)

    assert _exactly(parse(after, comments=True)) == _exactly(expected)
    assert set(_comments(after)) <= set(_comments(text))


@given(OBJECTS, st.sampled_from([None, 2, "\t"]), PATHS.map(lambda path: path[:1]), SMALL_VALUES)
def test_edited_json_is_valid_json(before: dict[str, Any], indent: Any, path: list[str], value: Any):
    text = json.dumps(before, indent=indent)
    assert _exactly(parse(set_value(text, path, value))) == _exactly({**before, path[0]: value})
    assert path[0] not in parse(remove(text, path))
    assert list(parse(set_value(text, path, value))) == list({**before, path[0]: value})


def _exactly(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _comments(text: str) -> list[str]:
    tree = scan(text, comments=True)
    return sorted(text[start:end] for start, end in tree.comments)
