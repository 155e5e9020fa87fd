"""T807: a key on the screen of servers acts on the selected server, also if the rows have changed
meanwhile: it could start a server that the person had disabled."""

import json
from pathlib import Path

import pytest
from textual.widgets import OptionList

from tests.unit.tui.desk import Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.requirement("AGT-4")
OTHER = "a-disabled-one"


def write_settings(home: Path, *args: str) -> None:
    (home / ".dragoman").mkdir(exist_ok=True)
    entry = {"command": "/bin/false", "args": [*args], "disabled": True}
    (home / ".dragoman/settings.json").write_text(json.dumps({"mcpServers": {OTHER: entry}}))


@pytest.mark.parametrize("is_refreshed", [True, False])
async def test_t807_the_selected_server_stays_selected(home: Path, desk: Desk, is_refreshed: bool):
    write_settings(home)
    async with desk.opened(is_configured=True) as seat:
        host = seat.app.host
        await seat.send("/mcp")
        await seat.until(lambda: "1 of 2 connected" in seat.shown(".title"))
        names = seat.app.screen.query_one(OptionList)
        names.highlighted = [*host.servers].index("desk")
        write_settings(home, "changed")
        await host.reload()
        if is_refreshed:
            place = [*host.servers].index("desk")
            await seat.until(lambda: "desk" in str(names.get_option_at_index(place).prompt))
        await seat.pilot.press("e")
        await seat.until(lambda: "disabled" in (host.servers["desk"].status, host.servers["desk"].phase))
        assert host.servers[OTHER].status == "disabled"
