"""What a call comes to."""

import pytest
from msgspec import Raw

from dragoman.calls.outcome import CallOutcome, covered, outcome_of, outcome_of_error
from dragoman.content.blocks import ImageBlock, TextBlock
from dragoman.content.prepare import Prepared
from dragoman.content.redact import Redactor
from dragoman.content.result import read_large_now, read_result
from dragoman.errors import CallError, ConnectionLost, RemoteError, UnknownTool


def outcome(result: bytes) -> CallOutcome:
    read, content = read_result(Raw(result))
    return outcome_of("box", "mcp__box__open", read, Prepared(content), 0.5)


def test_a_result_becomes_an_outcome_with_all_its_parts():
    found = outcome(b'{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1},"_meta":{"k":2}}')

    assert found == CallOutcome(
        server="box",
        tool="mcp__box__open",
        content=(TextBlock("a"),),
        structured_content={"n": 1},
        meta={"k": 2},
        duration_seconds=0.5,
    )
    assert not found.is_error


@pytest.mark.parametrize(
    ("result", "has_structured", "structured"),
    [
        (b"{}", False, None),
        (b'{"structuredContent":null}', True, None),
        (b'{"structuredContent":{}}', True, {}),
        (b'{"structuredContent":[1]}', True, [1]),
        (b'{"structuredContent":0}', True, 0),
        (b'{"structuredContent":false}', True, False),
        (b'{"structuredContent":""}', True, ""),
    ],
)
def test_null_is_distinguished_from_absent(result: bytes, has_structured: bool, structured: object):
    found = outcome(result)

    assert found.has_structured is has_structured
    assert found.structured == structured


def test_the_text_contains_every_readable_block():
    found = CallOutcome(
        server="s", tool="t", content=(TextBlock("a"), ImageBlock("", "image/png"), TextBlock("b"))
    )

    assert found.text == "a\n[image, image/png]\nb"
    assert CallOutcome(server="s", tool="t").text == ""


def test_raise_for_error_returns_a_successful_outcome():
    found = outcome(b'{"content":[{"type":"text","text":"fine"}]}')

    assert found.raise_for_error() is found


def test_the_error_of_a_call_is_raised_unchanged():
    error = RemoteError("box", -32000, "no")

    with pytest.raises(RemoteError) as caught:
        outcome_of_error("box", "mcp__box__open", error).raise_for_error()
    assert caught.value is error


def test_a_tool_error_is_raised_only_by_raise_for_error():
    found = outcome(b'{"content":[{"type":"text","text":"disk full"}],"isError":true}')

    assert found.is_error
    assert found.error is None
    with pytest.raises(CallError, match="mcp__box__open reported an error: disk full") as caught:
        found.raise_for_error()
    assert caught.value.server == "box"


def test_a_raised_tool_error_contains_no_terminal_sequences():
    found = CallOutcome(server="s", tool="t", content=(TextBlock("\x1b[2J\u202egone"),), is_error=True)

    with pytest.raises(CallError) as caught:
        found.raise_for_error()
    assert "\x1b" not in str(caught.value)
    assert "\u202e" not in str(caught.value)


def test_a_very_long_tool_error_is_cut_when_raised():
    found = CallOutcome(server="s", tool="t", content=(TextBlock("x" * 1_000_000),), is_error=True)

    with pytest.raises(CallError) as caught:
        found.raise_for_error()
    assert len(str(caught.value)) < 3000


def test_an_error_becomes_a_sentence_with_the_next_step():
    found = outcome_of_error("", "mcp__box__opne", UnknownTool("mcp__box__opne", near=("mcp__box__open",)))

    assert found.is_error
    assert found.text == "there is no tool named mcp__box__opne. Did you mean mcp__box__open?"
    assert isinstance(found.error, UnknownTool)


SECRET = "s3cret-0f-the-server"
REDACT = Redactor([SECRET])


def test_secrets_are_redacted_in_structured_content_meta_and_problems():
    read, content = read_result(
        Raw(f'{{"structuredContent":{{"{SECRET}":["{SECRET}"]}},"_meta":{{"k":"{SECRET}"}}}}'.encode())
    )
    prepared = Prepared(content, (), (f'"{SECRET}" is not of type "integer"',))
    found = outcome_of("box", "mcp__box__open", read, prepared, 0.5, REDACT)

    assert found.structured == {"[secret]": ["[secret]"]}
    assert found.meta == {"k": "[secret]"}
    assert SECRET not in repr(found)


def test_secrets_in_large_structured_content_are_redacted_when_it_is_decoded():
    raw = Raw(b'{"structuredContent":["' + SECRET.encode() + b'","' + b"x" * 300_000 + b'"]}')
    read, content = read_large_now(raw)
    found = outcome_of("box", "mcp__box__open", read, Prepared(content), 0.5, REDACT)

    assert found.structured == ["[secret]", "x" * 300_000]


def test_without_structured_content_none_is_added():
    read, content = read_result(Raw(b"{}"))

    assert not outcome_of("box", "t", read, Prepared(content), 0.5, REDACT).has_structured


def test_secrets_are_redacted_in_the_message_and_data_of_a_server_error():
    error = RemoteError("box", -1, "x" * 2040 + SECRET, {"why": [SECRET]}, status=400)
    found = outcome_of_error("box", "t", error, redact=REDACT)

    assert isinstance(found.error, RemoteError)
    assert (found.error.remote_code, found.error.status) == (-1, 400)
    assert found.error.remote_data == {"why": ["[secret]"]}
    assert SECRET[:6] not in found.text + str(found.error) + found.error.remote_message


def test_secrets_are_redacted_in_every_kind_of_error():
    error = ConnectionLost("box", f"it said {SECRET}", may_have_run=True, hint=f"see {SECRET}")
    safe = covered(error, REDACT)

    assert type(safe) is ConnectionLost
    assert (safe.cause, safe.hint, safe.may_have_run) == ("it said [secret]", "see [secret]", True)
    assert SECRET not in str(safe)
    assert covered(error, None) is error
