"""The reference servers from PyPI: the newest revision, spoken by somebody else's code."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.interop.visit import visit

Part = Callable[..., dict[str, Any]]


def make_repository(folder: Path) -> None:
    identity = ("-c", "user.name=A. Dragoman", "-c", "user.email=dragoman@example.org")
    for words in (("init", "-q"), ("add", "letter.txt"), (*identity, "commit", "-q", "-m", "A first letter")):
        subprocess.run(["git", *words], cwd=folder, check=True)


@pytest.mark.needs("mcp-server-git")
async def test_the_git_server_returns_state_and_history_of_a_repository(part: Part, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("Dear Sultan,\n")
    make_repository(tmp_path)
    (tmp_path / "draft.txt").write_text("Dear Doge,\n")
    async with visit(part("mcp-server-git", "--repository", str(tmp_path)), "2026-07-28") as server:
        status = await server.call("git_status", repo_path=str(tmp_path))
        assert "draft.txt" in status.text
        log = await server.call("git_log", repo_path=str(tmp_path), max_count=1)
        assert "A first letter" in log.text
        assert "A. Dragoman" in log.text
        staged = await server.call("git_add", repo_path=str(tmp_path), files=["draft.txt"])
        assert not staged.is_error
        elsewhere = await server.outcome("git_status", repo_path="/")
        assert elsewhere.is_error


@pytest.mark.needs("mcp-server-time")
async def test_the_time_server_uses_2026_07_28_and_converts(part: Part) -> None:
    async with visit(part("mcp-server-time", "--local-timezone", "UTC"), "2026-07-28") as server:
        assert server.tool_names() == {"convert_time", "get_current_time"}
        outcome = await server.call(
            "convert_time", source_timezone="UTC", time="12:00", target_timezone="Asia/Tokyo"
        )
        assert "T21:00:00+09:00" in json.loads(outcome.text)["target"]["datetime"]
        unknown = await server.outcome("get_current_time", timezone="Atlantis/Sunken")
        assert unknown.is_error
        assert "Atlantis/Sunken" in unknown.text


@pytest.mark.needs("mcp-server-time")
@pytest.mark.parametrize(
    "pin", ["legacy", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
)
async def test_the_time_server_can_be_pinned_to_every_revision(part: Part, pin: str) -> None:
    revision = "2025-11-25" if pin == "legacy" else pin
    async with visit({**part("mcp-server-time"), "protocol": pin}, revision) as server:
        assert "UTC" in (await server.call("get_current_time", timezone="UTC")).text
