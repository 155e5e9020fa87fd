"""The public face, pinned: a name that comes or goes does so on purpose."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman import errors, events, public

PUBLIC = [
    "AgentServers",
    "AudioBlock",
    "BuiltinTool",
    "Call",
    "CallError",
    "CallEvent",
    "CallFinished",
    "CallOutcome",
    "CallProgressed",
    "CallStarted",
    "Caller",
    "Challenge",
    "Classification",
    "Classifier",
    "ConfigError",
    "Configuration",
    "ConfigurationChanged",
    "ConnectError",
    "Credentials",
    "DragomanError",
    "ElicitsForms",
    "ElicitsUrls",
    "Event",
    "EventsDropped",
    "FormAnswer",
    "FormElicitation",
    "HookReported",
    "Host",
    "HostOptions",
    "ImageBlock",
    "Interaction",
    "NoInteraction",
    "PermissionAnswer",
    "PermissionAsked",
    "PermissionModeChanged",
    "PermissionQuestion",
    "Plan",
    "Progress",
    "PromptsChanged",
    "ResourceBlock",
    "ResourceLinkBlock",
    "ResourceUpdated",
    "ResourcesChanged",
    "ServerConfig",
    "ServerConnected",
    "ServerEvent",
    "ServerFailed",
    "ServerLogged",
    "ServerLost",
    "ServerStateChanged",
    "ServerStatus",
    "SignInScreen",
    "SignInState",
    "TerminalInteraction",
    "TextBlock",
    "Tool",
    "Toolbox",
    "ToolsChanged",
    "UnknownBlock",
    "UrlElicitation",
    "hook",
]


ROOT = Path(__file__).parents[2]
PUBLIC_MODULES = re.compile(r"dragoman(\.(errors|interaction|testing|adapters(\.\w+)?))?")


@pytest.mark.requirement("LIB-1")
def test_the_public_names():
    assert public.__all__ == PUBLIC


@pytest.mark.requirement("LIB-1")
def test_the_package_lists_its_public_names():
    assert dir(dragoman) == sorted([*PUBLIC, "__version__"])
    assert all(getattr(dragoman, name) is getattr(public, name) for name in PUBLIC)


@pytest.mark.parametrize("name", ["NoSuchThing", "host_", "_private", "__wrapped__"])
def test_no_other_name_is_public(name: str):
    with pytest.raises(AttributeError, match=f"module 'dragoman' has no attribute '{name}'"):
        getattr(dragoman, name)


def test_errors_with_subclasses_are_public_and_the_others_are_in_the_module_of_errors():
    kinds = [value for value in vars(errors).values() if isinstance(value, type)]
    bases = {kind for kind in kinds if issubclass(kind, errors.DragomanError) and kind.__subclasses__()}

    assert {getattr(dragoman, name) for name in PUBLIC if hasattr(errors, name)} == bases


def test_every_event_is_public():
    happened = {
        name
        for name, value in vars(events).items()
        if isinstance(value, type) and issubclass(value, events.Event)
    }

    assert happened <= set(PUBLIC)


def programs() -> dict[str, str]:
    """Every example, and every Python block of the documents that imports something."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {path.name: path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))}
    for document in documents:
        blocks = re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
        with_imports = (block for block in blocks if re.search(r"^(from|import) ", block, re.MULTILINE))
        found |= {f"{document.name}-{number}": block for number, block in enumerate(with_imports)}
    return found


PROGRAMS = programs()


def internal_imports(program: str) -> list[str]:
    """Modules of Dragoman that a program imports and that are not public, and names that do not exist."""
    found: list[str] = []
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("dragoman.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dragoman":
            module = node.module or ""
            names = [alias.name for alias in node.names]
            if module == "dragoman":
                found += [f"dragoman.{name}" for name in names if name not in [*PUBLIC, "errors"]]
            elif not PUBLIC_MODULES.fullmatch(module):
                found.append(module)
    return found


@pytest.mark.requirement("LIB-1")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_examples_and_documents_import_public_names_only(program: str):
    assert internal_imports(program) == []


@pytest.mark.parametrize(
    ("program", "internal"),
    [
        ("from dragoman.hooks.declared import hook", ["dragoman.hooks.declared"]),
        ("import dragoman.cli.main", ["dragoman.cli.main"]),
        ("from dragoman import Host, paths", ["dragoman.paths"]),
        ("import dragoman\nfrom dragoman.adapters import openai\nfrom dragoman.errors import NotFound", []),
    ],
)
def test_internal_imports_are_found(program: str, internal: list[str]):
    assert internal_imports(program) == internal


def test_the_version_is_that_of_the_package():
    assert dragoman.__version__ == importlib.metadata.version("dragoman")


def in_a_fresh_interpreter(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)


def test_the_public_names_can_be_imported_from_the_package():
    done = in_a_fresh_interpreter(f"from dragoman import {', '.join(PUBLIC)}")

    assert done.returncode == 0, done.stderr


# The main module of each package, and modules that other packages import.
MODULES = [
    "dragoman.calls.pipeline",
    "dragoman.catalog.catalog",
    "dragoman.cli.main",
    "dragoman.config.model",
    "dragoman.connections.connection",
    "dragoman.connections.eras",
    "dragoman.connections.factory",
    "dragoman.errors",
    "dragoman.host",
    "dragoman.permissions.checker",
    "dragoman.testing",
    "dragoman.transports.orphans",
    "dragoman.transports.stdio",
    "dragoman.servers.registry",
    "dragoman.servers.status",
    "dragoman.wire.peer",
]


@pytest.mark.parametrize("module", MODULES)
def test_any_module_may_be_the_first_to_be_imported(module: str):
    done = in_a_fresh_interpreter(f"import {module}")

    assert done.returncode == 0, done.stderr


def test_importing_a_base_module_loads_no_higher_module():
    done = in_a_fresh_interpreter(
        "import sys; from dragoman import paths; print('dragoman.host' in sys.modules)"
    )

    assert done.stdout == "False\n"
