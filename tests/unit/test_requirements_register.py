"""The register and the tests' own markers say the same. Both are read; no test module is imported."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.requirements import CHAPTERS, REQUIREMENTS, Requirement

ROOT = Path(__file__).parents[2]


def claims_in(tests: Path) -> dict[str, set[str]]:
    """Every test below the folder: node id → the requirement ids it claims."""
    claims: dict[str, set[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        module = ast.parse(path.read_text())
        name = path.relative_to(tests.parent).as_posix()
        claims |= _claims_below(module, name, _module_ids(module))
    return claims


def _claims_below(node: ast.Module | ast.ClassDef, name: str, inherited: set[str]) -> dict[str, set[str]]:
    claims: dict[str, set[str]] = {}
    for child in node.body:
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if child.name.startswith("test"):
                claims[f"{name}::{child.name}"] = inherited | set(_ids_in(*child.decorator_list))
            case ast.ClassDef() if child.name.startswith("Test"):
                own = inherited | set(_ids_in(*child.decorator_list))
                claims |= _claims_below(child, f"{name}::{child.name}", own)
            case _:
                pass
    return claims


def _module_ids(module: ast.Module) -> set[str]:
    """`pytestmark = pytest.mark.requirement(…)` at the top of a file holds for all its tests."""
    values = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(ast.unparse(target) == "pytestmark" for target in node.targets)
    ]
    return set(_ids_in(*values))


def _ids_in(*expressions: ast.expr) -> Iterator[str]:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                yield from (ast.literal_eval(argument) for argument in node.args)


def disagreements(register: Mapping[str, Requirement], claims: Mapping[str, set[str]]) -> list[str]:
    found: list[str] = []
    for test, ids in claims.items():
        for id in sorted(ids):
            if id not in register:
                found.append(f"{test} claims {id}, which is no requirement")
            elif test not in register[id].tests:
                found.append(f'{test} claims {id}; the register\'s row of {id} lacks "{test}"')
    for id, requirement in register.items():
        for test in requirement.tests:
            if test not in claims:
                found.append(f"{id} is said to be shown by {test}, which does not exist")
            elif id not in claims[test]:
                found.append(
                    f'{id} is said to be shown by {test}, which lacks @pytest.mark.requirement("{id}")'
                )
    return found


def test_the_register_and_the_tests_agree():
    found = disagreements(REQUIREMENTS, claims_in(ROOT / "tests"))
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


def register(**tests: tuple[str, ...]) -> dict[str, Requirement]:
    return {(id := key.replace("_", "-")): Requirement(id, "", names, False) for key, names in tests.items()}


def test_claims_are_found_on_functions_parameters_classes_and_modules(tmp_path: Path):
    file = tmp_path / "tests" / "unit" / "test_x.py"
    file.parent.mkdir(parents=True)
    file.write_text(SOURCE)

    assert claims_in(tmp_path / "tests") == {
        PLAIN: {"ABC-1"},
        PARAMETERS: {"ABC-1", "ABC-2"},
        INSIDE: {"ABC-1", "ABC-3", "ABC-4", "ABC-5"},
    }


@pytest.mark.parametrize(
    ("rows", "claims", "complaint"),
    [
        (register(ABC_1=(PLAIN,)), {PLAIN: {"ABC-1"}}, None),
        (register(ABC_1=()), {PLAIN: set()}, None),
        (register(ABC_1=()), {PLAIN: {"ABC-9"}}, "is no requirement"),
        (register(ABC_1=()), {PLAIN: {"ABC-1"}}, "the register's row of ABC-1 lacks"),
        (register(ABC_1=(PLAIN,)), {INSIDE: set()}, "which does not exist"),
        (register(ABC_1=(PLAIN,)), {PLAIN: set()}, 'lacks @pytest.mark.requirement("ABC-1")'),
    ],
)
def test_each_kind_of_disagreement_is_named(rows, claims, complaint: str | None):
    found = disagreements(rows, claims)
    assert [complaint in line for line in found] == [True] if complaint else found == []
