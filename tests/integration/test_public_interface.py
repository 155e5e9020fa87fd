"""The library as a program meets it."""

import inspect
import subprocess
import sys

import pytest

import dragoman
from dragoman import Host, public
from dragoman.demo.server import demo_server


@pytest.mark.requirement("LIB-1")
async def test_a_host_lists_and_calls_tools_and_has_events_and_servers() -> None:
    async with Host({"demo": demo_server()}, permission_mode="bypassPermissions") as host:
        listener = host.events()
        await host.ready()
        assert "mcp__demo__add" in [tool.name for tool in host.tools()]
        assert (await host.call("mcp__demo__add", {"a": 40, "b": 2})).text == "42"
        assert host.servers["demo"].status == "connected"
    assert [event async for event in listener]


@pytest.mark.requirement("LIB-1")
def test_about_fifty_public_names_typed_and_documented() -> None:
    assert 40 <= len(public.__all__) <= 61
    assert set(public.__all__) <= set(dir(dragoman))
    members = {name: member for name, member in inspect.getmembers(Host) if not name.startswith("_")}
    for name, member in members.items():
        function = member.fget if isinstance(member, property) else member
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty, name
        assert inspect.getdoc(member), f"Host.{name} is not documented"


@pytest.mark.requirement("LIB-1")
def test_importing_has_no_side_effects() -> None:
    program = "import sys; old = set(sys.modules); import dragoman; print(*set(sys.modules) - old)"
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True, check=True, timeout=30
    ).stdout.split()
    assert {name.partition(".")[0] for name in loaded} <= {"dragoman", *sys.stdlib_module_names}
    assert not {"asyncio", "socket", "subprocess", "msgspec"} & set(loaded)
