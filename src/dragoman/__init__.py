"""Dragoman: an MCP host for Python. It connects an agent to MCP servers and controls every tool call.

Importing this package loads no other module; its names (listed in `public.py`) are loaded when first used.
"""

from typing import TYPE_CHECKING, Any

from dragoman.version import VERSION as __version__  # noqa: F401

if TYPE_CHECKING:
    from dragoman.public import *  # noqa: F403


def __getattr__(name: str) -> Any:
    # This function is also called for modules (`from dragoman import paths`), which must not load everything
    # else. Module names are in lower case; of the public names, only `hook` is.
    if name[:1].isupper() or name == "hook":
        from dragoman import public

        if name in public.__all__:
            return getattr(public, name)
    raise AttributeError(f"module 'dragoman' has no attribute {name!r}")


def __dir__() -> list[str]:
    from dragoman import public

    return sorted(["__version__", *public.__all__])
