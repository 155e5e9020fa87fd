"""Every id that a test claims is in the register, and every row that says "met" has a test."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.requirements import CHAPTERS, REQUIREMENTS, Requirement, claims_by_requirement


def disagreements(rows: Iterable[Requirement], tests: Mapping[str, Sequence[str]]) -> list[str]:
    register = {row.id: row for row in rows}
    found = [
        f"{test} claims {id}, which is no requirement"
        for id, names in tests.items()
        if id not in register
        for test in names
    ]
    for id, row in register.items():
        if not row.missing and id not in tests:
            found.append(f'{id} is said to be met, and no test has @pytest.mark.requirement("{id}")')
    return found


def test_the_register_and_the_tests_agree():
    found = disagreements(REQUIREMENTS.values(), claims_by_requirement())
    assert not found, "\n".join(found)


def test_every_id_belongs_to_a_chapter_and_the_numbers_have_no_gap():
    for prefix in CHAPTERS:
        numbers = [int(id.partition("-")[2]) for id in REQUIREMENTS if id.startswith(f"{prefix}-")]
        assert numbers == list(range(1, len(numbers) + 1)), prefix
    assert {id.partition("-")[0] for id in REQUIREMENTS} == set(CHAPTERS)


# --- the checker itself, on a small tree ---

SOURCE = """
import pytest

pytestmark = [pytest.mark.requirement("ABC-1")]

def test_plain(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("ABC-2")), 2])
async def test_with_parameters(x): ...

@pytest.mark.requirement("ABC-3")
class TestGroup:
    @pytest.mark.requirement("ABC-4", "ABC-5")
    def test_inside(self): ...

def helper(): ...
"""
PLAIN, PARAMETERS, INSIDE = (
    f"tests/unit/test_x.py::{name}"
    for name in ("test_plain", "test_with_parameters", "TestGroup::test_inside")
)


def test_claims_are_found_on_functions_parameters_classes_and_modules(tmp_path: Path):
    file = tmp_path / "tests" / "unit" / "test_x.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)

    assert claims_by_requirement(tmp_path / "tests") == {
        "ABC-1": [PLAIN, PARAMETERS, INSIDE],
        "ABC-2": [PARAMETERS],
        "ABC-3": [INSIDE],
        "ABC-4": [INSIDE],
        "ABC-5": [INSIDE],
    }


@pytest.mark.parametrize(
    ("row", "tests", "complaint"),
    [
        (Requirement("ABC-1", ""), {"ABC-1": [PLAIN]}, None),
        (Requirement("ABC-1", "", missing="all of it"), {}, None),
        (Requirement("ABC-1", "", missing="a part"), {"ABC-1": [PLAIN]}, None),
        (Requirement("ABC-1", ""), {}, "ABC-1 is said to be met, and no test has"),
        (
            Requirement("ABC-1", "", missing="all of it"),
            {"ABC-9": [PLAIN]},
            f"{PLAIN} claims ABC-9, which is no requirement",
        ),
    ],
)
def test_each_kind_of_disagreement_is_named(
    row: Requirement, tests: dict[str, list[str]], complaint: str | None
):
    found = disagreements([row], tests)
    assert [complaint in line for line in found] == [True] if complaint else found == []
