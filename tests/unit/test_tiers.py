"""The plugin behind `scripts/test`, run on small trees of tests of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import TIERS, tier_of

PLUGIN = Path(__file__).parents[1] / "tiers.py"
GOOD = "def test_good(): pass"
NEEDY = """
import pytest

@pytest.mark.needs("server-x")
def test_needy(part):
    assert part("server-x", "-v") == {entry}
"""


@pytest.mark.parametrize(
    ("node_id", "tier"),
    [
        ("tests/unit/test_x.py::test_y", "unit"),
        ("tests/unit/wire/test_x.py::TestZ::test_y[a/b]", "unit"),
        ("tests/interop/node/test_x.py::test_y", "interop-node"),
    ],
)
def test_the_folder_is_the_tier(node_id: str, tier: str):
    assert tier_of(node_id) == tier


@pytest.mark.parametrize("node_id", ["tests/test_x.py::test_y", "tests/elsewhere/test_x.py::test_y"])
def test_a_test_in_no_tier_is_refused(node_id: str):
    with pytest.raises(pytest.UsageError, match="is in no tier"):
        tier_of(node_id)


class Tree:
    """A repository with nothing but tests; every tier has one that passes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("pyproject.toml", '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["."]\n')
        self.write("tests/__init__.py", "")
        self.write("tests/tiers.py", PLUGIN.read_text())
        self.write("tests/conftest.py", 'pytest_plugins = ["tests.tiers"]')
        for tier in TIERS:
            self.write(f"tests/{tier.replace('-', '/')}/test_{tier.replace('-', '_')}.py", GOOD)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run(self, *arguments: str, ci: bool = False) -> tuple[int, list[str]]:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--tiers", *arguments]
        environment = os.environ | {"CI": "true" if ci else "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, timeout=50
        )
        return done.returncode, done.stdout.splitlines()


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path)


def row(lines: list[str], tier: str) -> str:
    return next(line for line in lines if line.startswith(f"{tier} "))


def test_the_table_is_printed_before_the_closing_line(tree: Tree):
    code, lines = tree.run(ci=True)
    assert code == 0
    assert f"{len(TIERS)} passed" in lines[-1]
    assert "1 ran     1 passed   0 failed" in row(lines, "torture")


def test_a_test_that_skips_by_itself_fails(tree: Tree):
    tree.write("tests/unit/test_skips.py", "import pytest\ndef test_skips(): pytest.skip('not today')")
    tree.write(
        "tests/unit/test_marked.py", "import pytest\n@pytest.mark.skip(reason='no')\ndef test_marked(): pass"
    )
    code, lines = tree.run()
    assert code == 1
    assert "skip" not in lines[-1]
    assert "2 failed" in row(lines, "unit")


def test_a_module_that_skips_by_itself_fails(tree: Tree):
    tree.write("tests/unit/test_absent.py", "import pytest\npytest.importorskip('no_such_module')\n" + GOOD)
    code, lines = tree.run()
    assert code != 0
    assert any("does not skip by itself" in line for line in lines)


@pytest.mark.parametrize(("ci", "expected_code"), [(True, 1), (False, 0)])
def test_a_missing_part_is_named_and_fails_only_on_a_build_machine(tree: Tree, ci: bool, expected_code: int):
    tree.write(".cache/interop/manifest.json", json.dumps({"server-x": {"missing": "no node here"}}))
    tree.write("tests/interop/node/test_needy.py", NEEDY)
    code, lines = tree.run(ci=ci)
    assert code == expected_code
    assert "could not run: server-x: no node here (1 tests)" in row(lines, "interop-node")


def test_an_installed_part_is_passed_to_the_test(tree: Tree):
    tree.write(".cache/interop/manifest.json", json.dumps({"server-x": {"command": ["node", "x.js"]}}))
    entry = {"command": "node", "args": ["x.js", "-v"]}
    tree.write("tests/interop/node/test_needy.py", NEEDY.format(entry=entry))
    code, lines = tree.run(ci=True)
    assert code == 0, "\n".join(lines)
    assert "2 ran     2 passed" in row(lines, "interop-node")


def test_a_tier_without_tests_is_reported_as_not_run(tree: Tree):
    (tree.root / "tests/e2e/test_e2e.py").unlink()
    code, lines = tree.run(ci=True)
    assert code == 1
    assert "could not run: it has no tests" in row(lines, "e2e")


def test_quick_leaves_out_slow_tests_and_slow_tiers(tree: Tree):
    tree.write("tests/e2e/test_slow.py", "import pytest\n@pytest.mark.slow\ndef test_slow(): assert False")
    code, lines = tree.run("--quick", ci=True)
    assert code == 0
    assert "1 left out by --quick" in row(lines, "e2e")
    assert row(lines, "torture").endswith(" left out by --quick")
    assert "3 passed" in lines[-1]


def test_a_run_of_one_file_does_not_fail_for_other_tiers(tree: Tree):
    code, lines = tree.run("tests/unit/test_unit.py", ci=True)
    assert code == 0
    assert "not asked for" in row(lines, "torture")
