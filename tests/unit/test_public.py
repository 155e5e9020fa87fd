"""The public face, pinned: a name that comes or goes does so on purpose."""

import importlib.metadata
import subprocess
import sys

import pytest

import dragoman
from dragoman import errors, public

PUBLIC = [
    "AgentServers",
    "AudioBlock",
    "BuiltinTool",
    "CallError",
    "CallOutcome",
    "CallTimeout",
    "Challenge",
    "Clock",
    "CommandNotFound",
    "ConfigError",
    "ConfigFileError",
    "Configuration",
    "ConnectError",
    "ConnectTimeout",
    "ConnectionLost",
    "Credentials",
    "DragomanError",
    "HandshakeFailed",
    "Host",
    "HostClosed",
    "HostNotOpen",
    "HttpError",
    "ImageBlock",
    "InputUnavailable",
    "Interaction",
    "InvalidArguments",
    "MalformedReply",
    "MessageTooLarge",
    "MissingPackage",
    "NotConnected",
    "NotFound",
    "PermissionAnswer",
    "PermissionQuestion",
    "PermissionRefused",
    "Plan",
    "PolicyRefused",
    "Progress",
    "RemoteError",
    "ResourceBlock",
    "ResourceLinkBlock",
    "ServerConfig",
    "ServerStatus",
    "SignInNeeded",
    "StartFailed",
    "TextBlock",
    "Tool",
    "Toolbox",
    "UnknownBlock",
    "UnknownTool",
    "Unreachable",
    "WrongLoop",
]


@pytest.mark.requirement("LIB-1")
def test_the_public_words():
    assert public.__all__ == PUBLIC


@pytest.mark.requirement("LIB-1")
def test_the_package_lists_what_it_hands_out():
    assert dir(dragoman) == sorted([*PUBLIC, "__version__"])
    assert all(getattr(dragoman, name) is getattr(public, name) for name in PUBLIC)


@pytest.mark.parametrize("name", ["NoSuchThing", "host_", "_private", "__wrapped__"])
def test_nothing_else_is_handed_out(name: str):
    with pytest.raises(AttributeError, match=f"module 'dragoman' has no attribute '{name}'"):
        getattr(dragoman, name)


def test_every_error_is_public():
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }

    assert raised <= set(PUBLIC)


def test_the_version_is_the_packages():
    assert dragoman.__version__ == importlib.metadata.version("dragoman")


def in_a_fresh_interpreter(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)


def test_the_public_words_can_be_imported_from_the_package():
    done = in_a_fresh_interpreter(f"from dragoman import {', '.join(PUBLIC)}")

    assert done.returncode == 0, done.stderr


# Each room's own door, and the modules that other rooms' modules lean on.
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


def test_naming_a_ground_floor_module_loads_nothing_above_it():
    done = in_a_fresh_interpreter(
        "import sys; from dragoman import paths; print('dragoman.host' in sys.modules)"
    )

    assert done.stdout == "False\n"
