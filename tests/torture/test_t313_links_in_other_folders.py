"""T313: a file mention follows no symlink out of the person's folders, whatever path mentions the file."""

from pathlib import Path

import pytest

from dragoman import Host
from dragoman.agent.mentions import expanded

pytestmark = pytest.mark.requirement("AGT-1")


@pytest.fixture
def work(home: Path) -> Path:
    """A repository with a symlink to a key, another folder with the same, and symlinks to both."""
    (home / "keys").mkdir()
    (home / "keys/id").write_text("canary")
    for name in ("work", "library"):
        (home / name).mkdir(exist_ok=True)
        (home / name / "notes.md").symlink_to("../keys/id")
        (home / name / "plain.md").write_text(name)
        (home / f"to-{name}").symlink_to(name)
    (home / "work/other.md").symlink_to("../library/plain.md")
    return home / "work"


MENTIONS = ["../to-work/notes.md", "~/to-work/notes.md", "../library/notes.md", "~/to-library/notes.md"]


@pytest.mark.parametrize("mention", MENTIONS)
async def test_t313_a_symlink_in_a_folder_of_the_person_does_not_lead_outside(
    home: Path, work: Path, mention: str
):
    async with Host({}) as host:
        text, problems = await expanded(f"See @{mention}", host, work, [home / "library"])
    key = (home / "keys/id").resolve()
    assert text == f"See @{mention}"
    assert problems == [f"@{mention} was not added: it is a link to {key}, which is outside your folders"]


@pytest.mark.parametrize("mention", ["../to-library/plain.md", "other.md", "../keys/id"])
async def test_t313_a_symlink_to_another_folder_of_the_person_and_a_typed_path_are_followed(
    home: Path, work: Path, mention: str
):
    async with Host({}) as host:
        text, problems = await expanded(f"See @{mention}", host, work, [home / "library"])
    assert (text.count("<file "), problems) == (1, [])
