"""Variables, as each host spells them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.config.interchange import variables
from dragoman.config.interchange.shared import Notes
from dragoman.config.interchange.variables import VariableSyntax, incoming, outgoing

DIALECTS = {
    "ours": variables.dollar_braces("Host"),
    "editor": variables.editor_variables("Host"),
    "windsurf": variables.plain_editor_variables("Host"),
    "shell": variables.shell_variables("Host"),
    "none": variables.no_variables("Host"),
}


def into_ours(syntax: VariableSyntax, text: str) -> tuple[str, int]:
    notes = Notes()
    return incoming(syntax, text, notes.about("s"), "f"), len(notes.all())


def into_theirs(syntax: VariableSyntax, text: str) -> tuple[str | None, int]:
    notes = Notes()
    return outgoing(syntax, text, notes.about("s"), "f"), len(notes.all())


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("syntax", "written", "meant", "notes"),
    [
        ("ours", "${X}/${Y:-z}/$Z/${env:W}", "${X}/${Y:-z}/$Z/${env:W}", 0),
        ("editor", "a${env:X}b${env:Y}", "a${X}b${Y}", 0),
        ("editor", "${workspaceFolder}/x", "${WORKSPACE_FOLDER:-.}/x", 1),
        ("editor", "${userHome}/x", "${HOME}/x", 1),
        ("editor", "a${pathSeparator}b${/}c", "a/b/c", 2),
        ("editor", "${input:api-key}", "${INPUT_API_KEY}", 1),
        ("editor", "${input:a.b c}", "${INPUT_A_B_C}", 1),
        ("editor", "${X}", "${X}", 1),
        ("editor", "${config:some.setting}", "${config:some.setting}", 1),
        ("editor", "${env:ProgramFiles(x86)}", "${env:ProgramFiles(x86)}", 1),
        ("editor", "$X $(id) ${", "$X $(id) ${", 0),
        ("windsurf", "${env:X}", "${X}", 0),
        ("windsurf", "${workspaceFolder}", "${workspaceFolder}", 1),
        ("windsurf", "${file:/secret}", "${file:/secret}", 1),
        ("shell", "$X", "${X}", 0),
        ("shell", "${X}", "${X}", 0),
        ("shell", "${X:-y}", "${X:-y}", 0),
        ("shell", "Bearer $X-$Y", "Bearer ${X}-${Y}", 0),
        ("shell", "pa$word", "pa${word}", 1),
        ("shell", "costs $5", "costs $5", 0),
        ("shell", "^x$", "^x$", 0),
        ("shell", "${a b}", "${a b}", 1),
        ("none", "plain $X", "plain $X", 0),
        ("none", "${X}", "${X}", 1),
    ],
)
def test_variables_of_a_host_in_dragomans_syntax(syntax: str, written: str, meant: str, notes: int):
    assert into_ours(DIALECTS[syntax], written) == (meant, notes)


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize(
    ("syntax", "ours", "written", "notes"),
    [
        ("ours", "${X}/${Y:-z}", "${X}/${Y:-z}", 0),
        ("editor", "a${X}b", "a${env:X}b", 0),
        ("editor", "${X:-y}", "${env:X}", 1),
        ("editor", "${WORKSPACE_FOLDER:-.}/x", "${workspaceFolder}/x", 0),
        ("editor", "${workspaceFolder2}", "${env:workspaceFolder2}", 0),
        ("editor", "${env:X}", "${env:X}", 1),  # text to us, a variable to them
        ("windsurf", "${WORKSPACE_FOLDER:-.}", "${env:WORKSPACE_FOLDER}", 1),
        ("shell", "${X}", "${X}", 0),
        ("shell", "${X:-y}", "${X}", 1),
        ("shell", "$X", "$X", 1),
        ("shell", "$5", "$5", 0),
        ("none", "$X", "$X", 0),
        ("none", "a${X}", None, 0),
    ],
)
def test_dragomans_variables_in_a_hosts_syntax(syntax: str, ours: str, written: str | None, notes: int):
    assert into_theirs(DIALECTS[syntax], ours) == (written, notes)


PIECES = st.lists(
    st.sampled_from(
        [
            "${A}",
            "${B:-x}",
            "$C",
            "${env:D}",
            "${file:/e}",
            "$",
            "{",
            "}",
            "${",
            "text",
            "${input:f}",
            "_",
            "9",
        ]
    ),
    max_size=6,
).map("".join)


@pytest.mark.requirement("CFG-12")
@pytest.mark.parametrize("syntax", DIALECTS.values(), ids=list(DIALECTS))
@given(text=PIECES)
def test_a_text_is_converted_back_unchanged_unless_reported(syntax: VariableSyntax, text: str):
    written, noted = into_theirs(syntax, text)
    if written is None:
        assert syntax.spelling is None
        return
    back, noted_again = into_ours(syntax, written)
    assert back == text or noted or noted_again


@pytest.mark.parametrize("syntax", DIALECTS.values(), ids=list(DIALECTS))
def test_a_note_contains_no_value_and_no_default(syntax: VariableSyntax):
    notes = Notes()
    note = notes.about("s")
    for text in (
        "${X:-hunter2}",
        "hunter2${config:hunter2}",
        "${env:Y:-hunter2}",
        "a$hunter2",
        "${file:hunter2}",
    ):
        incoming(syntax, text, note, "f")
        outgoing(syntax, text, note, "f")
    assert "hunter2" not in repr(notes.all())


@pytest.mark.parametrize(
    "text", ["${" * 50_000, "}" + "$A" * 50_000, "${A:-" * 50_000, "${env:" * 50_000 + "}"]
)
def test_a_text_full_of_variable_starts_takes_linear_time(text: str):
    for syntax in DIALECTS.values():
        incoming(syntax, text, Notes().about("s"), "f")
        outgoing(syntax, text, Notes().about("s"), "f")
