"""The hook events, as data: what a hook is given and what it may answer, for each event.

Contains the names of events, what their matchers are compared with, and the fields of their JSON in both
directions. The tables of the guide are generated from it. Names and meanings are those of Claude Code's hooks
wherever it has the event, so that hooks written for it work here.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Field(NamedTuple):
    name: str
    kind: str
    meaning: str


class EventSpec(NamedTuple):
    name: str
    when: str
    matched: str
    """The field whose value is compared with the matcher; empty: a matcher has no effect."""
    given: tuple[Field, ...]
    """The fields that a hook is given, in addition to `COMMON`."""
    answers: tuple[Field, ...] = ()
    """The fields of `hookSpecificOutput` that are used."""
    blocking: str = ""
    """What exit code 2, `"decision": "block"` and `"continue": false` do; empty: nothing."""
    failing: str = ""
    """The effect of a hook that fails, if it blocks on errors."""


STOP_LIMIT: Final = 8
"""How often hooks may make a model continue after its answer to one prompt."""

COMMON: Final = (
    Field(
        "session_id",
        "text",
        "in a conversation its id, which `--resume` takes; otherwise the same for everything one host does",
    ),
    Field("transcript_path", "text", "the conversation's file of JSON lines; empty outside of one"),
    Field("cwd", "text", "the folder the host looks from"),
    Field("hook_event_name", "text", "the event"),
    Field("permission_mode", "text", "the permission mode in force"),
)

ANSWERS: Final = (
    Field("decision", "text", '`"block"` refuses; `"approve"` is an older word for allow'),
    Field("reason", "text", "why"),
    Field("continue", "boolean", "`false` refuses as well; in `Stop` and `SubagentStop` it ends the work"),
    Field("stopReason", "text", "why"),
    Field("suppressOutput", "boolean", "no effect: what hooks print is not shown in any case"),
    Field("systemMessage", "text", "shown to the person"),
    Field("hookSpecificOutput", "object", "the event's own fields, and perhaps `hookEventName`"),
)
"""The fields that the answer to any event may have."""

_TOOL: Final = (
    Field("tool_name", "text", "the tool's qualified name"),
    Field("tool_input", "object", "the arguments"),
    Field("mcp_server_name", "text", "its server; of a built-in tool the server it deals with, or empty"),
    Field("mcp_tool_name", "text", "its name on that server; empty for a built-in tool"),
    Field("tool_use_id", "text", "identifies the call in all hooks and events"),
)
_SERVER: Final = Field("mcp_server_name", "text", "the server's name")
_ELICITATION: Final = (
    _SERVER,
    Field("mode", "text", "`form` or `url`"),
    Field("url", "text", "the URL to open; empty in mode `form`"),
    Field("elicitation_id", "text", "the server's id of the question; empty if it gave none"),
    Field("tool_use_id", "text", "the call that the question belongs to; empty if it is not known which"),
)
_CONTEXT: Final = Field("additionalContext", "text", "given to the model along with the result")
_OUTPUT: Final = Field(
    "updatedMCPToolOutput", "text or list of text blocks", "what the model sees instead of the result"
)
_STOP: Final = (
    Field("stop_hook_active", "boolean", "whether the model already continues because of such a hook"),
    Field("last_assistant_message", "text", "what the model wrote last"),
)
_CONTINUES: Final = (
    f"the model is given the reason and continues, {STOP_LIMIT} times for one prompt at most; "
    '`"continue": false` ends the work instead'
)
_ENDS: Final = "no effect: the work ends"
_REFUSES: Final = "the call is refused, with the reason"
_DECLINES: Final = "the question is declined"

_SPECS: Final = (
    EventSpec(
        "PreToolUse",
        "before a call, and before it is decided whether it may be made",
        "tool_name",
        _TOOL,
        (
            Field("permissionDecision", "text", "`allow`, `ask` or `deny`"),
            Field("permissionDecisionReason", "text", "why"),
            Field("updatedInput", "object", "the arguments to use instead, all of them"),
            _CONTEXT,
        ),
        _REFUSES,
        "the call is refused",
    ),
    EventSpec(
        "PostToolUse",
        "after a call that succeeded",
        "tool_name",
        (*_TOOL, Field("tool_response", "text", "the result's text as the model is to see it")),
        (_CONTEXT, _OUTPUT),
        "the model is given the reason along with the result",
        "the model is not given the result",
    ),
    EventSpec(
        "PostToolUseFailure",
        "after a call that failed",
        "tool_name",
        (
            *_TOOL,
            Field("error", "text", "the error as the model is to see it"),
            Field("error_code", "text or null", "what kind of error; null if it is the tool's own"),
        ),
        (_CONTEXT, _OUTPUT),
        "the model is given the reason along with the error",
        "the model is not given the error",
    ),
    EventSpec(
        "PermissionRequest",
        "before a person is asked whether a call may be made",
        "tool_name",
        _TOOL,
        (
            Field("decision.behavior", "text", "`allow` or `deny`; without it the person is asked"),
            Field("decision.message", "text", "why"),
        ),
        _REFUSES,
        "the call is refused",
    ),
    EventSpec(
        "Elicitation",
        "before a server's question is put to a person",
        "mcp_server_name",
        (
            *_ELICITATION,
            Field("message", "text", "the question, as the server wrote it"),
            Field("requested_schema", "object", "the form, as JSON Schema; empty in mode `url`"),
        ),
        (
            Field(
                "action",
                "text",
                "`accept`, `decline` or `cancel`; without it the person is asked, or it is declined if "
                "there is none. In mode `url`, `accept` opens nothing: the hook has done what is needed",
            ),
            Field("content", "object", "the values, if accepted"),
        ),
        _DECLINES,
        _DECLINES,
    ),
    EventSpec(
        "ElicitationResult",
        "before the answer to a server's question is sent",
        "mcp_server_name",
        (
            *_ELICITATION,
            Field("action", "text", "`accept`, `decline` or `cancel`"),
            Field("content", "object", "the values"),
        ),
        (
            Field("action", "text", "another action; what was declined or cancelled stays so"),
            Field("content", "object", "the values to send instead, all of them"),
        ),
        _DECLINES,
        _DECLINES,
    ),
    EventSpec(
        "SessionStart",
        "when a conversation begins, after it was summarized, or when a host without one has started",
        "source",
        (Field("source", "text", "`startup`, `resume`, `clear` or `compact`"),),
        (
            Field(
                "additionalContext",
                "text",
                "for the model, before the first prompt (of a host without conversation: "
                "`host.session_context()`); text that is not JSON is used as well",
            ),
        ),
    ),
    EventSpec(
        "SessionEnd",
        "when a conversation ends, or before a host without one ends",
        "reason",
        (
            Field(
                "reason",
                "text",
                "`prompt_input_exit` (the person ended it), `clear`, `resume` (another one is continued) or "
                "`other`; of a host without conversation `close`",
            ),
        ),
    ),
    EventSpec(
        "UserPromptSubmit",
        "before a prompt of the person is given to the model",
        "",
        (Field("prompt", "text", "the prompt"),),
        (
            Field(
                "additionalContext",
                "text",
                "given to the model along with the prompt; text that is not JSON is used as well",
            ),
        ),
        "the model is not given the prompt, and the person is shown the reason",
        "the model is not given the prompt",
    ),
    EventSpec("Stop", "when the model has answered a prompt", "", _STOP, (), _CONTINUES, _ENDS),
    EventSpec(
        "SubagentStop",
        "when an agent that the model gave work to has answered",
        "agent_type",
        (
            Field("agent_id", "text", "another one for each piece of work"),
            Field("agent_type", "text", "the name of the agent"),
            Field("agent_transcript_path", "text", "the file of JSON lines with what the agent did"),
            *_STOP,
        ),
        (),
        _CONTINUES,
        _ENDS,
    ),
    EventSpec(
        "PreCompact",
        "before a conversation is replaced by a summary",
        "trigger",
        (
            Field("trigger", "text", "`manual` or `auto`"),
            Field("custom_instructions", "text", "what the person wants the summary to contain, or empty"),
        ),
    ),
    EventSpec(
        "Notification",
        "when the person's attention is wanted",
        "notification_type",
        (
            Field("message", "text", "what for, in words"),
            Field("title", "text", "in a few words"),
            Field("notification_type", "text", "`permission_prompt`, `elicitation_dialog` and the like"),
        ),
    ),
    EventSpec(
        "ServerConnected",
        "when a server can be used",
        "mcp_server_name",
        (_SERVER, Field("protocol_version", "text", "the revision it speaks")),
    ),
    EventSpec(
        "ServerFailed",
        "when a server could not be connected",
        "mcp_server_name",
        (
            _SERVER,
            Field("reason", "text", "why"),
            Field("hint", "text or null", "what may help"),
        ),
    ),
    EventSpec(
        "NeedsAuth",
        "when a server wants a sign-in",
        "mcp_server_name",
        (_SERVER, Field("reason", "text", "why")),
    ),
    EventSpec(
        "ToolsChanged",
        "when a server's list of tools was read",
        "mcp_server_name",
        (
            _SERVER,
            Field("tool_count", "number", "how many there are"),
            Field("changed", "list of text", "tools whose definition is another than before"),
            Field("problems", "list of text", "what had to be left out, and why"),
        ),
    ),
)

EVENTS: Final = {spec.name: spec for spec in _SPECS}

CONNECTION_EVENTS: Final = frozenset({"ServerConnected", "ServerFailed", "NeedsAuth", "ToolsChanged"})
"""The events of connections: nothing waits for their hooks."""
