"""A secret with invisible characters inside is covered in definitions, as it is in results."""

import pytest
from msgspec import Raw

from dragoman.catalog.listing import ToolList, covered
from dragoman.catalog.tools import Tool
from dragoman.content.redact import Redactor
from dragoman.names import QualifiedName, ServerName
from dragoman.wire.messages import ToolDefinition

SECRET = "sesame-4711-open"
INSIDE = [SECRET[:6] + hidden + SECRET[6:] for hidden in ("\u200b", "\u2060", "\U000e0041", "\ufeff")]


def shown(definition: ToolDefinition) -> Tool:
    (found,) = covered(ToolList(items=(definition,)), Redactor([SECRET])).items
    return Tool(ServerName("x"), QualifiedName("mcp__x__t"), found)


@pytest.mark.requirement("CAT-2")
@pytest.mark.parametrize("text", INSIDE, ids=ascii)
def test_texts_and_schemas_of_definitions_are_redacted(text: str):
    schema = b'{"type":"object","description":"%s","properties":{"a":{"enum":["%s"]}}}'
    tool = shown(
        ToolDefinition(
            "t",
            Raw(schema % (text.encode(), text.encode())),
            f"title {text}",
            f"description {text}",
            annotations={"title": text},
        )
    )
    for seen in (tool.title, tool.description, repr(tool.model_schema), repr(tool.annotations)):
        assert SECRET not in seen
        assert SECRET not in seen.replace(text[6], "")


@pytest.mark.requirement("CAT-2")
def test_texts_without_secrets_are_unchanged():
    tool = shown(ToolDefinition("t", Raw(b'{"type":"object"}'), "a\u200bb", "plain"))
    assert tool.definition.title == "a\u200bb"
