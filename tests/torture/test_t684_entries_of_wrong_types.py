"""T684: an entry that a program creates with a value of a wrong type is refused: a single string in place
of a list of disabled tools would be read letter by letter."""

import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host, ServerConfig

pytestmark = pytest.mark.requirement("CFG-1")

ARRAY_EXPECTED = "Expected `array`, got `str`"
INVALID: list[tuple[str, Any, str]] = [
    ("disabled_tools", "delete", f"{ARRAY_EXPECTED} - at `$.disabledTools`"),
    ("disabled_tools", ("delete", None), "Expected `str`, got `null` - at `$.disabledTools[1]`"),
    ("enabled_tools", "read write", "Expected `array | null`, got `str` - at `$.enabledTools`"),
    ("enabled", "no", "Expected `bool`, got `str` - at `$.enabled`"),
    ("disabled", 1, "Expected `bool`, got `int` - at `$.disabled`"),
    ("trusted", "false", "Expected `bool`, got `str` - at `$.trusted`"),
    ("roots", "no", "Expected `bool | null`, got `str` - at `$.roots`"),
    ("sampling", "Off", "Invalid enum value 'Off' - at `$.sampling`"),
    ("args", "-m server", f"{ARRAY_EXPECTED} - at `$.args`"),
    ("env", {"A": "a", "PORT": 1}, "Expected `str`, got `int` - at `$.env.PORT`"),
    ("headers", {"A": "a", "X-B": None}, "Expected `str`, got `null` - at `$.headers.X-B`"),
]


@pytest.mark.parametrize(("field", "value", "why"), INVALID, ids=lambda each: str(each)[:20])
async def test_t684_an_entry_of_a_wrong_type_is_refused_with_its_field(
    home: Path, field: str, value: Any, why: str
):
    entry = ServerConfig(command=sys.executable, **{field: value})
    async with Host({"box": entry}) as host:
        status = (await host.ready(timeout=20))["box"]
    assert (status.status, status.reason) == ("failed", f"server 'box': {why}")


async def test_t684_a_list_is_accepted_in_place_of_a_tuple(home: Path):
    names: Any = ["delete"]
    entry = ServerConfig(command=sys.executable, args=("-c", "pass"), disabled_tools=names)
    host = Host({"box": entry})
    config = host.configuration.servers["box"].config
    assert config == ServerConfig(command=sys.executable, args=("-c", "pass"), disabled_tools=("delete",))
