"""Dragoman: an MCP host for Python. Connects an agent to every MCP server, and answers for every call."""

from __future__ import annotations

__version__ = "0.1.0"

from dragoman.calls.outcome import CallOutcome
from dragoman.catalog.tools import Tool
from dragoman.clock import Clock
from dragoman.config.model import ServerConfig
from dragoman.content.blocks import (
    AudioBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    UnknownBlock,
)
from dragoman.errors import (
    CallError,
    CallTimeout,
    CommandNotFound,
    ConfigError,
    ConnectError,
    ConnectionLost,
    ConnectTimeout,
    DragomanError,
    HandshakeFailed,
    HostClosed,
    InvalidArguments,
    MalformedReply,
    MessageTooLarge,
    NotConnected,
    PermissionRefused,
    RemoteError,
    StartFailed,
    UnknownTool,
)
from dragoman.host import Host
from dragoman.interaction import Interaction, PermissionAnswer, PermissionQuestion
from dragoman.view import ServerView
from dragoman.wire.peer import Progress

__all__ = [
    "AudioBlock",
    "CallError",
    "CallOutcome",
    "CallTimeout",
    "Clock",
    "CommandNotFound",
    "ConfigError",
    "ConnectError",
    "ConnectTimeout",
    "ConnectionLost",
    "DragomanError",
    "HandshakeFailed",
    "Host",
    "HostClosed",
    "ImageBlock",
    "Interaction",
    "InvalidArguments",
    "MalformedReply",
    "MessageTooLarge",
    "NotConnected",
    "PermissionAnswer",
    "PermissionQuestion",
    "PermissionRefused",
    "Progress",
    "RemoteError",
    "ResourceBlock",
    "ResourceLinkBlock",
    "ServerConfig",
    "ServerView",
    "StartFailed",
    "TextBlock",
    "Tool",
    "UnknownBlock",
    "UnknownTool",
    "__version__",
]
