"""The public names, and the module of each. `dragoman` imports a name when it is first used.

Base classes of errors are here; the others are in `dragoman.errors`. Types of questions that few programs
answer themselves (sampling, fields of forms) are in `dragoman.interaction`, which is public as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.agent_servers import AgentServers
from dragoman.auth.state import SignInState
from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.tools import BuiltinTool, Tool
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
from dragoman.errors import CallError, ConfigError, ConnectError, DragomanError
from dragoman.events import (
    CallEvent,
    CallFinished,
    CallProgressed,
    CallStarted,
    ConfigurationChanged,
    Event,
    EventsDropped,
    HookReported,
    PermissionAsked,
    PermissionModeChanged,
    PromptsChanged,
    ResourcesChanged,
    ResourceUpdated,
    ServerConnected,
    ServerEvent,
    ServerFailed,
    ServerLogged,
    ServerLost,
    ServerStateChanged,
    ToolsChanged,
)
from dragoman.hooks.declared import hook
from dragoman.host import Host, HostOptions
from dragoman.interaction import (
    Caller,
    ElicitsForms,
    ElicitsUrls,
    FormAnswer,
    FormElicitation,
    Interaction,
    NoInteraction,
    PermissionAnswer,
    PermissionQuestion,
    SignInScreen,
    UrlElicitation,
)
from dragoman.permissions.classifier import Classification, Classifier
from dragoman.permissions.rules import Call
from dragoman.servers.status import ServerStatus
from dragoman.wire.peer import Progress

if TYPE_CHECKING:
    from dragoman.cli.terminal_interaction import TerminalInteraction
    from dragoman.toolbox import Toolbox


def __getattr__(name: str) -> Any:
    # Both load modules that many programs never use.
    if name == "Toolbox":
        from dragoman.toolbox import Toolbox

        return Toolbox
    if name == "TerminalInteraction":
        from dragoman.cli.terminal_interaction import TerminalInteraction

        return TerminalInteraction
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
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
