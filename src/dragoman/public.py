"""The public names, and the module of each. `dragoman` imports a name when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.agent_servers import AgentServers
from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.tools import BuiltinTool, Tool
from dragoman.clock import Clock
from dragoman.config.load import Configuration
from dragoman.config.model import ServerConfig
from dragoman.config.plan import Plan
from dragoman.content.blocks import (
    AudioBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from dragoman.credentials import Challenge, Credentials
from dragoman.errors import (
    CallError,
    CallTimeout,
    CommandNotFound,
    ConfigError,
    ConfigFileError,
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    DragomanError,
    HandshakeFailed,
    HostClosed,
    HostNotOpen,
    HttpError,
    InputUnavailable,
    InvalidArguments,
    MalformedReply,
    MessageTooLarge,
    MissingPackage,
    NotConnected,
    NotFound,
    PermissionRefused,
    PolicyRefused,
    RemoteError,
    SignInNeeded,
    StartFailed,
    UnknownTool,
    Unreachable,
    WrongLoop,
)
from dragoman.host import Host
from dragoman.interaction import Interaction, PermissionAnswer, PermissionQuestion
from dragoman.servers.status import ServerStatus
from dragoman.wire.peer import Progress

if TYPE_CHECKING:
    from dragoman.toolbox import Toolbox


def __getattr__(name: str) -> Any:
    if name == "Toolbox":  # with all that searching needs; many programs never use it
        from dragoman.toolbox import Toolbox

        return Toolbox
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
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
