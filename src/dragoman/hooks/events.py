"""The hook events, and what their matchers are compared with.

`docs/guides/hooks.md` has the fields of each event in both directions. Names and meanings are those of Claude
Code's hooks wherever it has the event, so that hooks written for it work here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

STOP_LIMIT: Final = 8
"""How often hooks may make a model continue after its answer to one prompt."""

EVENTS: Final[Mapping[str, str]] = {
    "PreToolUse": "tool_name",
    "PostToolUse": "tool_name",
    "PostToolUseFailure": "tool_name",
    "PermissionRequest": "tool_name",
    "Elicitation": "mcp_server_name",
    "ElicitationResult": "mcp_server_name",
    "SessionStart": "source",
    "SessionEnd": "reason",
    "UserPromptSubmit": "",
    "Stop": "",
    "SubagentStop": "agent_type",
    "PreCompact": "trigger",
    "Notification": "notification_type",
    "ServerConnected": "mcp_server_name",
    "ServerFailed": "mcp_server_name",
    "NeedsAuth": "mcp_server_name",
    "ToolsChanged": "mcp_server_name",
}
"""Each event, and the field whose value is compared with the matcher; empty: a matcher has no effect."""

CONNECTION_EVENTS: Final = frozenset({"ServerConnected", "ServerFailed", "NeedsAuth", "ToolsChanged"})
"""The events of connections: nothing waits for their hooks."""

ANSWERING_EVENTS: Final = frozenset({"Elicitation", "ElicitationResult"})
"""The events whose hooks may refuse the question of a server."""
