"""Imports inside Dragoman point downward only.

Read from the source: imports for type checking, imports inside functions and `import_module("dragoman.…")`
count like any other.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"

PUBLIC = "dragoman"  # the public names, in dragoman/__init__.py

# From the lowest. A package or module may import what is in a lower layer.
LAYERS: list[set[str]] = [
    {
        "addresses",
        "atomic_write",
        "browser",
        "errors",
        "events",
        "forms",
        "interaction",
        "names",
        "protocol",
        "settings",
        "paths",
        "clock",
        "deadlines",
        "cleaning",
        "version",
        "programs",
        "questions",
        "json_values",
        "credentials",
        "surrogates",
        "tracing",
        "transport_types",
        "urls",
        "log_files",
        "private_files",
        "processes",
        "wildcards",
        "mixed_alphabets",
        "own_threads",
        "resolver",
    },
    {"transports", "wire", "auth", "config"},
    {"connections"},
    {"catalog", "permissions", "hooks", "content"},
    {"servers"},
    {"calls"},
    {"host", "host_options", "live_configuration", "access_control", "agent_servers", "sign_ins", "toolbox"},
    {"agent", "adapters", "demo", "testing"},
    {"tui", "gateway"},
    {"cli", PUBLIC, "public"},  # cli starts the others; `TerminalInteraction` is of cli
    {"__main__"},
]
LAYER_OF = {package: number for number, layer in enumerate(LAYERS) for package in layer}

# Packages of one layer that do not import one another. All others may, but not in cycles.
INDEPENDENT: list[set[str]] = [
    {"transports", "wire", "auth", "config"},
    {"tui", "gateway"},
    {"agent", "demo"},
    {"agent", "testing"},
]

Arrow = tuple[str, str]


def arrows_in(source: Path) -> dict[Arrow, str]:
    """Every import from one package to another → the first place that makes it."""
    arrows: dict[Arrow, str] = {}
    packages = {
        entry.stem for entry in source.iterdir() if entry.suffix == ".py" or any(entry.glob("**/*.py"))
    }
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        here = PUBLIC if parts == ("__init__",) else parts[0]
        package = ["dragoman", *parts[:-1]]
        for node in ast.walk(ast.parse(path.read_text())):
            for target in _imported_modules(node, package):
                there = _package_of(target, packages)
                if there and there != here:
                    place = f"{path.relative_to(source)}:{getattr(node, 'lineno', 0)}"
                    arrows.setdefault((here, there), place)
    return arrows


def _imported_modules(node: ast.AST, package: list[str]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=module, names=names, level=level):
            base = package[: len(package) - level + 1] if level else []
            prefix = ".".join([*base, *([module] if module else [])])
            yield from (f"{prefix}.{alias.name}" for alias in names)
        case ast.Call(
            func=ast.Name("import_module") | ast.Attribute(attr="import_module"), args=[argument, *_]
        ):
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
        case _:
            pass


def _package_of(module: str, packages: set[str]) -> str | None:
    """dragoman.wire.codec → wire; dragoman.Host → the public names; anything outside Dragoman → None."""
    first, _, rest = module.partition(".")
    if first != "dragoman":
        return None
    package = rest.partition(".")[0]
    return package if package in packages else PUBLIC


def wrong_arrows(arrows: dict[Arrow, str]) -> list[str]:
    wrong: list[str] = []
    for (here, there), place in arrows.items():
        if unknown := {here, there} - LAYER_OF.keys():
            wrong.append(f"{place}: {unknown.pop()} is in no layer; put it into LAYERS")
        elif LAYER_OF[here] < LAYER_OF[there]:
            wrong.append(f"{place}: {here} imports {there}, of a higher layer")
        elif any({here, there} <= group for group in INDEPENDENT):
            wrong.append(f"{place}: {here} and {there} are independent")
        elif LAYER_OF[here] == LAYER_OF[there] and _leads_to(there, here, arrows):
            wrong.append(f"{place}: {here} and {there} import each other, perhaps by way of others")
    return wrong


def _leads_to(start: str, goal: str, arrows: dict[Arrow, str]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        package = waiting.pop()
        if package == goal:
            return True
        further = {there for here, there in arrows if here == package} - seen
        seen |= further
        waiting += further
    return False


@pytest.fixture(scope="module")
def arrows() -> dict[Arrow, str]:
    return arrows_in(SOURCE)


def test_imports_point_downward_only(arrows: dict[Arrow, str]):
    wrong = wrong_arrows(arrows)
    assert not wrong, "\n".join(wrong)


def test_the_complete_tree_is_read(arrows: dict[Arrow, str]):
    assert ("wire", "errors") in arrows or ("wire", "protocol") in arrows


# --- the test itself, on small trees ---


def tree(root: Path, files: dict[str, str]) -> Path:
    everywhere = {
        "errors.py": "",
        "names.py": "",
        "wire/__init__.py": "",
        "config/__init__.py": "",
        "host.py": "",
    }
    for name, text in (everywhere | files).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("host.py", "from dragoman.wire import codec\nimport dragoman.errors, asyncio"),
        ("wire/codec.py", "from ..errors import DragomanError\nfrom . import other\nfrom .other import x"),
        ("cli/main.py", "from dragoman import Host, errors"),
        ("names.py", "from dragoman.errors import DragomanError"),
    ],
)
def test_a_downward_import_is_accepted(tmp_path: Path, file: str, text: str):
    assert wrong_arrows(arrows_in(tree(tmp_path, {file: text}))) == []


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        (
            {"wire/codec.py": "from dragoman.host import Host"},
            "wire/codec.py:1: wire imports host, of a higher layer",
        ),
        ({"wire/codec.py": "from .. import host"}, "wire imports host, of a higher layer"),
        ({"wire/codec.py": "from dragoman import Host"}, "wire imports dragoman, of a higher layer"),
        (
            {"wire/codec.py": "def f():\n    import dragoman.host"},
            "codec.py:2: wire imports host, of a higher layer",
        ),
        (
            {"errors.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .wire import x"},
            "errors.py:3: errors imports wire, of a higher layer",
        ),
        (
            {"errors.py": "from importlib import import_module\nimport_module('dragoman.wire')"},
            "errors imports wire, of a higher layer",
        ),
        ({"wire/codec.py": "import dragoman.config"}, "wire and config are independent"),
        ({"errors.py": "import dragoman.names", "names.py": "import dragoman.errors"}, "import each other"),
        ({"novel/__init__.py": "import dragoman.errors"}, "novel is in no layer"),
    ],
)
def test_a_wrong_import_is_detected(tmp_path: Path, files: dict[str, str], complaint: str):
    found = wrong_arrows(arrows_in(tree(tmp_path, files)))
    assert found
    assert complaint in found[0]
