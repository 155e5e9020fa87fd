"""The types of messages from servers, as far as a host reads them.

Unknown fields are ignored; parts that the host passes on unread stay `Raw`. `catalog` interprets tool
definitions, `calls` interprets results.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

ABSENT = Raw()
"""The value of a `Raw` field whose key is absent. Compared by identity."""

MessageId = str | int | float | bool | None


class Envelope(Struct, gc=False):
    """One JSON-RPC message: request, notification or reply. Keys are matched exactly."""

    jsonrpc: Literal["2.0"]
    id: MessageId | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


class ErrorObject(Struct):
    code: int
    message: str = ""
    data: Any = None


class LargeErrorObject(Struct):
    """An error whose `data` is too large to be decoded on the event loop."""

    code: int
    message: str = ""


class ErrorReply(Struct):
    """A reply that is an error; its id may be missing or null."""

    jsonrpc: Literal["2.0"]
    error: ErrorObject


class Implementation(Struct):
    name: str = ""
    version: str = ""
    title: str | None = None


class InitializeResult(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] | None = None
    server_info: Implementation | None = None
    instructions: str | None = None


class DiscoverResult(
    Struct,
    rename={
        "supported_versions": "supportedVersions",
        "server_info": "serverInfo",
        "result_type": "resultType",
        "meta": "_meta",
    },
):
    supported_versions: list[str]
    capabilities: dict[str, Any] | None = None
    instructions: str | None = None
    result_type: str = "complete"
    # Servers built before the revision was final put it here instead of in `_meta`.
    server_info: Implementation | None = None
    meta: dict[str, Any] | None = None


class ProgressParams(Struct, rename="camel", gc=False):
    progress_token: str | int
    progress: float
    total: float | None = None
    message: str | None = None


class LogParams(Struct):
    level: str = "info"
    logger: str | None = None
    data: Any = None


class ToolDefinition(
    Struct, gc=False, rename={"input_schema": "inputSchema", "output_schema": "outputSchema", "meta": "_meta"}
):
    name: str
    input_schema: Raw
    title: str | None = None
    description: str | None = None
    output_schema: Raw = ABSENT
    annotations: dict[str, Any] | None = None
    meta: dict[str, Any] | None = None
    icons: Raw = ABSENT
    execution: Raw = ABSENT
    is_plain: ClassVar[bool] = False
    """Whether all its texts are known to be printable ASCII."""


class PlainToolDefinition(
    ToolDefinition,
    gc=False,
    rename={"input_schema": "inputSchema", "output_schema": "outputSchema", "meta": "_meta"},
):
    is_plain: ClassVar[bool] = True
