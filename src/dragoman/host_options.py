"""The keyword arguments of `Host`, each with its meaning."""

from __future__ import annotations

from collections.abc import (
    Callable,
    Collection,
    Mapping,
    Sequence,
)
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from dragoman.cleaning import one_line
from dragoman.clock import Clock
from dragoman.errors import ConfigError
from dragoman.hooks.declared import Hook
from dragoman.interaction import Interaction, Sampler
from dragoman.permissions.classifier import Classifier
from dragoman.permissions.modes import PermissionMode

if TYPE_CHECKING:  # aiohttp is loaded when the first remote server is connected
    from dragoman.auth.stores.base import AccountStore
    from dragoman.credentials import Credentials
    from dragoman.transports.control import ControlChannel


class HostOptions(TypedDict, total=False):
    """The keyword arguments of `Host` and `Host.configured`."""

    permission_mode: PermissionMode | None
    """How calls are decided that no rule decides; by default, `defaultMode` of the files."""
    rules: Mapping[str, Sequence[str]] | None
    """Permission rules by kind, `{"allow": ["mcp__box"]}`, besides those of files."""
    hooks: Sequence[Hook]
    """Hooks of the program, made with `dragoman.hook`, besides those of files."""
    session_hooks: bool
    """Whether hooks of `SessionStart` and `SessionEnd` run when the host opens and closes; by default they
    do. A program with conversations runs them for each conversation."""
    interaction: Interaction | None
    """Answers questions: permission, forms, URLs. Without it, requests that need an answer are refused."""
    sampler: Sampler | None
    """The program's model, for servers whose entry allows `sampling`."""
    roots: Sequence[Path | str]
    """Folders that servers are given as roots besides the working directory."""
    classifier: Classifier | None
    """Decides in permission mode `auto`."""
    audit: bool | None
    """Whether calls are written to the audit log; by default only for hosts that read configuration files."""
    server_logs: bool | None
    """Whether servers have log files; by default only for hosts that read configuration files."""
    settings: Mapping[str, int] | None
    """Values of settings; they take precedence over files and environment."""
    extensions: Mapping[str, Mapping[str, Any]] | None
    """Extensions of the protocol that the program supports, with their settings, declared to every server:
    `{"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}` of a program that shows
    pages of MCP Apps. Support for tasks is always declared."""
    clock: Clock | None
    """The clock; tests pass a fake one."""
    watch: bool
    """Whether changes of the configuration files are followed while running."""
    only: Collection[str] | None
    """The servers to use, of all that are configured; by default all."""
    set_aside: Collection[str]
    """Servers that this host leaves to hosts of single accounts; see `Host.for_account`."""
    tool_lock: Path | None
    """A tool lock; tools that differ from it are left out."""
    ignore_broken_settings: bool
    """Whether settings of the person or the project that cannot be read are ignored, with their prohibitions;
    otherwise nothing is started or called. Does not apply to the administrator's settings."""
    control: ControlChannel | None
    """Carries the messages of servers that live in an embedding program (type `sdk`)."""
    bearer: Callable[[str], Credentials] | None
    """Returns the credentials for a connector of an organisation (type `claudeai-proxy`), by server."""
    accounts: AccountStore | None
    """Where the sign-ins of servers are stored, if not in the secret store of this machine."""
    bearer_origins: Collection[str]
    """Origins at which these connectors are connected, besides those named in `connectors` of the
    settings."""


_COLLECTIONS: Final = ("roots", "only", "set_aside", "bearer_origins")
_FLAGS: Final = ("session_hooks", "audit", "server_logs", "watch", "ignore_broken_settings")


def check_options(options: Mapping[str, Any]) -> None:
    """Raises `TypeError` for an option that does not exist, as Python does for any function. Raises
    `ConfigError` for one string in place of a collection, and for a flag that is no bool: such an option
    would silently allow more than it says."""
    for name, value in options.items():
        if name not in HostOptions.__annotations__:
            raise TypeError(f"Host() got an unexpected keyword argument {one_line(name, 80)!r}")
        if name in _COLLECTIONS and isinstance(value, str):
            raise ConfigError(f"{name}: must be a list of strings", hint='For example ["one", "two"].')
        if name in _FLAGS and not isinstance(value, bool | None):
            raise ConfigError(f"{name}: must be True or False", hint="Text such as 'false' counts as true.")
