"""T242: a file mention adds that file, and no file that a repository or a rule keeps from the model."""

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.agent.mentions import expanded
from dragoman.hooks.declared import hook

pytestmark = pytest.mark.requirement("AGT-1")


@pytest.fixture
def work(home: Path) -> Path:
    folder = home / "work"
    folder.mkdir(exist_ok=True)
    (home / "keys").mkdir()
    (home / "keys/id").write_text("canary")
    (folder / "plain.md").write_text("plain")
    (folder / "inner.md").symlink_to("plain.md")
    return folder


async def expanded_mentions(text: str, folder: Path, **rules: list[str]) -> tuple[str, list[str]]:
    async with Host({}, rules=rules) as host:
        return await expanded(text, host, folder)


@pytest.mark.parametrize("target", ["../keys/id", "{home}/keys/id"])
@pytest.mark.parametrize("mention", ["notes.md", "sub/../notes.md", "./notes.md"])
async def test_t242_a_symlink_of_a_repository_does_not_lead_outside_the_folders(
    work: Path, home: Path, mention: str, target: str
):
    (work / "sub").mkdir()
    (work / "notes.md").symlink_to(target.format(home=home))
    text, problems = await expanded_mentions(f"See @{mention}", work)
    assert text == f"See @{mention}"
    real = os.path.realpath(home / "keys/id")
    assert problems == [f"@{mention} was not added: it is a link to {real}, which is outside your folders"]


async def test_t242_a_symlinked_folder_does_not_lead_outside_the_folders(work: Path, home: Path):
    (work / "docs").symlink_to("../keys")
    assert (await expanded_mentions("See @docs/id", work))[0] == "See @docs/id"


@pytest.mark.parametrize("mention", ["inner.md", "../keys/id", "~/keys/id"])
async def test_t242_symlinks_inside_and_paths_that_the_person_types_are_followed(work: Path, mention: str):
    text, problems = await expanded_mentions(f"See @{mention}", work)
    assert text.startswith(f'See @{mention}\n\n<file name="{mention}">\n')
    assert problems == []


@pytest.mark.parametrize("mention", ["plain.md", "./plain.md", "inner.md", "~/work/plain.md"])
async def test_t242_a_rule_that_denies_the_file_applies_to_a_mention(work: Path, mention: str):
    text, problems = await expanded_mentions(f"See @{mention}", work, deny=["Read(file_path=*/plain.md)"])
    assert text == f"See @{mention}"
    assert problems == [f"@{mention} was not added: a rule about Read denies it"]


async def test_t242_a_hook_that_denies_the_file_applies_to_a_mention(work: Path):
    seen: list[object] = []

    def refuse(facts: dict[str, Any]) -> dict[str, Any]:
        seen.append(facts["tool_input"])
        return {"decision": "block", "reason": "no"}

    async with Host({}, hooks=[hook(refuse, "PreToolUse", matcher="Read", name="guard")]) as host:
        text, problems = await expanded("See @inner.md", host, work)
    assert text == "See @inner.md"
    assert problems == ["@inner.md was not added: the hook guard denies it"]
    assert seen == [{"file_path": str((work / "plain.md").resolve())}]
