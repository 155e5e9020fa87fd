"""What a model gets back: always an answer, cleaned, and nothing an API would choke on."""

import base64
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dragoman import CallOutcome, Host, ImageBlock, TextBlock, Tool
from dragoman.adapters.answering import make_call, parts_of, shortened, text_of
from dragoman.adapters.plain import tool_schema
from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import ServerTool
from dragoman.errors import HostClosed, NotConnected
from dragoman.names import ServerName
from tests.unit.fakes import definition

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n....").decode()


class Broken:
    def __init__(self, error: Exception) -> None:
        self.error = error

    def tools(self) -> list[Tool]:
        return []

    def is_app_tool(self, name: str) -> bool:
        return False

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, call_id: str | None = None
    ) -> CallOutcome:
        raise self.error


@pytest.mark.requirement("LIB-2")
async def test_plain_schemas_are_accepted_by_every_api(host: Host):
    schemas = {schema["name"]: schema for schema in map(tool_schema, host.tools())}

    assert schemas["mcp__demo__add"]["inputSchema"]["required"] == ["a", "b"]
    assert schemas["mcp__odd__choose"]["inputSchema"]["properties"]["x"] == {"type": "string"}
    assert "oneOf" not in schemas["mcp__odd__choose"]["inputSchema"]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ('{"a": 1, "b": 2}', "3"),
        (b'{"a": 1, "b": 2}', "3"),
        ({"a": 1, "b": 2}, "3"),
        ('{"a": 1, "b"', "they are not valid JSON"),
        ("[1, 2]", "they are not a JSON object"),
        ("null", "they are not a JSON object"),
        (None, "they are not a JSON object"),
        ("", "required"),
        ('{"a": "one", "b": 2}', "a: "),
    ],
)
async def test_arguments_may_be_json_text_and_invalid_ones_are_reported_to_the_model(
    host: Host, arguments: Any, text: str
):
    outcome = await make_call(host, "mcp__demo__add", arguments)

    assert outcome.is_error is (text != "3")
    assert text in text_of(outcome)


async def test_an_unknown_tool_is_reported_to_the_model(host: Host):
    assert "no tool named nothing" in text_of(await make_call(host, "nothing", {}))


@pytest.mark.requirement("CAL-6")
async def test_a_lost_server_is_reported_to_the_model():
    outcome = await make_call(Broken(NotConnected("demo", "failed", "it crashed")), "mcp__demo__add", {})

    assert outcome.is_error
    assert "demo has failed" in text_of(outcome)


async def test_a_cancellation_is_not_reported_to_the_model():
    with pytest.raises(HostClosed):
        await make_call(Broken(HostClosed()), "mcp__demo__add", {})


@pytest.mark.requirement("CAT-2")
@pytest.mark.parametrize(
    ("tool", "text"),
    [
        ("dirty", "seen"),
        ("silent", "(no output)"),
        ("data", '{"a":1}'),
        ("broken_image", "[image, declared as image/png: it is no PNG, JPEG, GIF or WebP image; 12 bytes"),
    ],
)
async def test_results_can_be_sent_to_every_model(host: Host, tool: str, text: str):
    (part,) = parts_of(await make_call(host, f"mcp__odd__{tool}", {}))

    assert isinstance(part, str)
    assert part.startswith(text)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBP", "image/webp"),
    ],
)
def test_the_type_of_an_image_follows_from_its_bytes(data: bytes, kind: str):
    block = ImageBlock(data=base64.b64encode(data).decode(), mime_type="image/x-lie")

    assert parts_of(CallOutcome(server="s", tool="t", content=(block,))) == [
        ImageBlock(data=block.data, mime_type=kind)
    ]


@pytest.mark.parametrize("data", ["", "%%%", "bm90IGFuIGltYWdl"])
def test_data_that_is_not_an_image_is_only_named(data: str):
    outcome = CallOutcome(server="s", tool="t", content=(ImageBlock(data=data, mime_type="image/png"),))

    assert parts_of(outcome) == ["[image, image/png]"]


def test_an_error_is_reported_as_text_only():
    content = (TextBlock("It failed."), ImageBlock(data=PNG, mime_type="image/png"))

    assert parts_of(CallOutcome(server="s", tool="t", content=content, is_error=True)) == [
        "It failed.",
        "[image, image/png]",
    ]


MISSING = {"langchain": ("langchain", "langchain_core"), "agent": ("pydantic_ai", "pydantic_ai")}
"""By extra: the module that needs it, and what is not there without it."""


@pytest.mark.parametrize("extra", MISSING)
def test_without_its_package_an_adapter_raises_an_error_that_states_what_to_install(extra: str):
    module, library = MISSING[extra]
    code = f"""
import sys
sys.modules[{library!r}] = None
from dragoman import ConfigError
try:
    import dragoman.adapters.{module}
except ImportError as error:
    print(isinstance(error, ConfigError), error.extra, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    package = {"langchain": "langchain-core", "agent": "pydantic-ai-slim"}[extra]
    told = f"{package}, a package of the extra {extra!r}, is not installed"
    assert done.stdout == f"True {extra} {told}\n"


def test_every_public_extra_has_a_module_that_reports_when_it_is_missing():
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]

    # `local`: tests/unit/agent/test_local.py; `otel`: tests/unit/test_tracing.py; `gateway`:
    # tests/unit/gateway/test_redis_store.py
    others = {"all", "dev", "gateway", "local", "otel"}
    assert set(project["optional-dependencies"]) - others == set(MISSING)


def test_the_adapters_for_plain_apis_load_no_library():
    code = "import sys, dragoman.adapters.anthropic, dragoman.adapters.openai; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert not {"anthropic", "openai", "pydantic", "httpx"} & set(done.stdout.split())


DIRTY = "a\u202eb\u200bc\x1b[31md\U000e0041e"


def test_texts_for_models_from_an_adapter_are_cleaned():
    outcome = CallOutcome(server="s", tool="t", content=(TextBlock(DIRTY),))
    assert parts_of(outcome) == ["abcde"]
    assert text_of(outcome) == "abcde"
    structured = CallOutcome(server="s", tool="t", content=(), structured_content={"key": "b\u202ec"})
    assert parts_of(structured) == ['{"key":"bc"}']


def test_a_description_that_an_adapter_shortens_is_cleaned_and_cut():
    tool = ServerTool(ServerName("s"), qualify("s", "t"), definition("t", description=DIRTY * 300))
    text = shortened(tool, 100)
    assert text.startswith("abcdeabcde")
    assert len(text) <= 100
    assert not set(DIRTY) - set("abcd[31me") & set(text)
