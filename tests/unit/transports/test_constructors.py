"""What belongs together is handed to a transport as one value (`Network`, `Program`)."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "src" / "dragoman" / "transports"
LIMIT = 6


def test_no_constructor_has_more_than_six_parameters():
    too_many = [
        f"{path.name}: {owner.name}"
        for path in SOURCE.glob("*.py")
        for owner in ast.walk(ast.parse(path.read_text()))
        if isinstance(owner, ast.ClassDef)
        for method in owner.body
        if isinstance(method, ast.FunctionDef)
        and method.name == "__init__"
        and len(method.args.args) - 1 + len(method.args.kwonlyargs) > LIMIT
    ]
    assert too_many == []
