"""Imports inside Dragoman point downward only.

Read from the source: imports for type checking, imports inside functions and `import_module("dragoman.…")`
count like any other.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "dragoman"

FACE = "dragoman"  # the public words, in dragoman/__init__.py

# From the ground up. What stands on one floor may look at the floors below it.
FLOORS: list[set[str]] = [
    {
        "errors",
        "events",
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
        "copying",
        "credentials",
        "surrogates",
        "transport_types",
        "private_files",
        "processes",
        "wildcards",
    },
    {"transports", "wire", "auth", "config"},
    {"connections"},
    {"catalog", "permissions", "hooks", "content"},
    {"servers"},
    {"calls"},
    {"host", "access_control", "agent_servers", "toolbox"},
    {"agent", "adapters", "demo", "testing"},
    {"cli", "tui", "gateway", FACE, "public"},  # `TerminalInteraction` is of cli
    {"__main__"},
]
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}

# Rooms of one floor that know nothing of one another. Elsewhere neighbours may talk, though not in circles.
STRANGERS: list[set[str]] = [
    {"transports", "wire", "auth", "config"},
    {"cli", "tui", "gateway"},
    {"agent", "demo"},
    {"agent", "testing"},
]

Arrow = tuple[str, str]


def arrows_in(source: Path) -> dict[Arrow, str]:
    """Every import from one room to another → the first place that makes it."""
    arrows: dict[Arrow, str] = {}
    rooms = {entry.stem for entry in source.iterdir() if entry.suffix == ".py" or any(entry.glob("**/*.py"))}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        here = FACE if parts == ("__init__",) else parts[0]
        package = ["dragoman", *parts[:-1]]
        for node in ast.walk(ast.parse(path.read_text())):
            for target in _imported_modules(node, package):
                there = _room_of(target, rooms)
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


def _room_of(module: str, rooms: set[str]) -> str | None:
    """dragoman.wire.codec → wire; dragoman.Host → the face; anything outside Dragoman → None."""
    first, _, rest = module.partition(".")
    if first != "dragoman":
        return None
    room = rest.partition(".")[0]
    return room if room in rooms else FACE


def wrong_arrows(arrows: dict[Arrow, str]) -> list[str]:
    wrong: list[str] = []
    for (here, there), place in arrows.items():
        if homeless := {here, there} - FLOOR_OF.keys():
            wrong.append(f"{place}: {homeless.pop()} has no floor yet; give it one in FLOORS")
        elif FLOOR_OF[here] < FLOOR_OF[there]:
            wrong.append(f"{place}: {here} looks up at {there}")
        elif any({here, there} <= group for group in STRANGERS):
            wrong.append(f"{place}: {here} and {there} are strangers")
        elif FLOOR_OF[here] == FLOOR_OF[there] and _leads_to(there, here, arrows):
            wrong.append(f"{place}: {here} and {there} import each other, perhaps by way of others")
    return wrong


def _leads_to(start: str, goal: str, arrows: dict[Arrow, str]) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        room = waiting.pop()
        if room == goal:
            return True
        further = {there for here, there in arrows if here == room} - seen
        seen |= further
        waiting += further
    return False


def test_imports_point_downward_only():
    wrong = wrong_arrows(arrows_in(SOURCE))
    assert not wrong, "\n".join(wrong)


def test_the_whole_house_is_read():
    arrows = arrows_in(SOURCE)
    assert ("wire", "errors") in arrows or ("wire", "protocol") in arrows


# --- the test itself, on small trees ---


def house(root: Path, files: dict[str, str]) -> Path:
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
def test_a_downward_arrow_is_fine(tmp_path: Path, file: str, text: str):
    assert wrong_arrows(arrows_in(house(tmp_path, {file: text}))) == []


@pytest.mark.parametrize(
    ("files", "complaint"),
    [
        ({"wire/codec.py": "from dragoman.host import Host"}, "wire/codec.py:1: wire looks up at host"),
        ({"wire/codec.py": "from .. import host"}, "wire looks up at host"),
        ({"wire/codec.py": "from dragoman import Host"}, "wire looks up at dragoman"),
        ({"wire/codec.py": "def f():\n    import dragoman.host"}, "codec.py:2: wire looks up at host"),
        (
            {"errors.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .wire import x"},
            "errors.py:3: errors looks up at wire",
        ),
        (
            {"errors.py": "from importlib import import_module\nimport_module('dragoman.wire')"},
            "errors looks up at wire",
        ),
        ({"wire/codec.py": "import dragoman.config"}, "wire and config are strangers"),
        ({"errors.py": "import dragoman.names", "names.py": "import dragoman.errors"}, "import each other"),
        ({"novel/__init__.py": "import dragoman.errors"}, "novel has no floor yet"),
    ],
)
def test_a_wrong_arrow_is_caught(tmp_path: Path, files: dict[str, str], complaint: str):
    found = wrong_arrows(arrows_in(house(tmp_path, files)))
    assert found
    assert complaint in found[0]
