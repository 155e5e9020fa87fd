"""T687: a function of a program that returns yes or no must not be a coroutine function: a coroutine object
is true."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import BuiltinTool, ConfigError, Host

pytestmark = pytest.mark.requirement("PRM-1")


async def never(_: Any) -> bool:
    return False


class Never:
    async def has_tool(self, name: str) -> bool:
        return False


async def run(arguments: Mapping[str, Any]) -> str:
    return "done"


@pytest.mark.parametrize("function", [never, Never().has_tool], ids=["function", "method"])
async def test_t687_a_coroutine_function_does_not_give_an_agent_every_tool(home: Path, function: Any):
    async with Host({}) as host:
        with pytest.raises(ConfigError) as caught:
            host.for_agent([], has_tool=function)
    assert str(caught.value).splitlines()[0] == "has_tool must be a plain function"


def test_t687_a_coroutine_function_does_not_exempt_a_built_in_tool_from_rules():
    function: Any = never
    with pytest.raises(ConfigError) as caught:
        BuiltinTool("write", run, description="", input_schema={"type": "object"}, needs_no_rule=function)
    assert str(caught.value) == "built-in tool 'write': needs_no_rule must be a plain function"
