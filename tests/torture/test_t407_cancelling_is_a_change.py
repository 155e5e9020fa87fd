"""T407: a restriction to read-only tools also forbids the cancelling of a task."""

from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.errors import PermissionRefused
from tests.torture.test_t192_tasks_of_other_names import entry, left_running

pytestmark = pytest.mark.requirement("PRM-1")


@pytest.mark.parametrize(
    "options",
    [
        {"permission_mode": "plan"},
        {"rules": {"deny": ["mcp__s.1(!readOnly)"]}},
        {"rules": {"deny": ["cancel_mcp_task(!readOnly)"]}},
    ],
    ids=["mode plan", "a rule about the server", "a rule about the request"],
)
async def test_t407_cancelling_a_task_is_not_allowed(home: Path, options: dict[str, Any]):
    task = await left_running(home)
    async with Host({"s.1": entry(home, "one")}, **options) as host:
        await host.ready()
        with pytest.raises(PermissionRefused):
            await host.tasks.cancel(task)
        assert (await host.tasks.get(task)).status != "cancelled"
