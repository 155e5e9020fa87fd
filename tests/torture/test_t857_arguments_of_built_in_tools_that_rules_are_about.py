"""T857: a program names the argument of its tool that rules are about, and the tool has no such argument
(`shell_argument="cmd"`). Rules about commands, or about the server that it deals with, had no effect."""

from typing import Any

import pytest

from dragoman import BuiltinTool
from dragoman.errors import ConfigError

pytestmark = pytest.mark.requirement("PRM-1")
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}, "server": {"type": "string"}}}


async def run(arguments: Any, *context: Any) -> str:
    return "ran"


def tool(schema: dict[str, Any], **options: Any) -> BuiltinTool:
    return BuiltinTool("Danger", run, description="", input_schema=schema, **options)


@pytest.mark.parametrize("option", ["shell_argument", "server_argument", "subject_argument"])
@pytest.mark.parametrize("name", ["cmd", "Command", "", 5])
def test_t857_an_argument_that_the_tool_does_not_have_is_refused(option: str, name: object):
    with pytest.raises(ConfigError) as raised:
        tool(SCHEMA, **{option: name})
    assert (
        str(raised.value) == f"built-in tool 'Danger': {option} is {name!r}, which is not an argument of it"
    )


def test_t857_arguments_of_the_tool_are_accepted():
    made = tool(SCHEMA, shell_argument="command", server_argument="server")
    assert (made.shell_argument, made.server_argument) == ("command", "server")


def test_t857_so_are_those_of_a_schema_without_properties():
    assert tool({"type": "object"}, shell_argument="command").shell_argument == "command"
