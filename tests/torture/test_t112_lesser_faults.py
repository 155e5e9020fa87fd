"""T112: Answers of hooks in unusual encodings, spellings of URLs, full disks, and other smaller faults."""

import asyncio
import codecs
import errno
import json
import os
import time
from itertools import cycle, islice
from pathlib import Path

import pytest

from dragoman import ConfigError, Host
from dragoman.adapters import openai
from dragoman.calls.audit import AuditEntry, AuditLog, read
from dragoman.calls.url_elicitation import url_question
from dragoman.errors import PermissionRefused
from tests.servers import stdio_server
from tests.torture.projects import write
from tests.torture.test_t62_schema_attacks import ATTACKS
from tests.unit.fakes import tool

DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}
ALLOW = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}
ENCODINGS = {
    "UTF-16 with a mark": json.dumps(DENY).encode("utf-16"),
    "UTF-16 LE": json.dumps(DENY).encode("utf-16-le"),
    "UTF-16 BE with a mark": codecs.BOM_UTF16_BE + json.dumps(DENY).encode("utf-16-be"),
    "UTF-32": json.dumps(DENY).encode("utf-32"),
    "UTF-8 with a mark": codecs.BOM_UTF8 + json.dumps(DENY).encode(),
    "Latin-1": '{"reason": "ne\xfc"'.encode("latin-1"),
    "a decision at the top": json.dumps({"permissionDecision": "deny"}).encode(),
    "an allow at the top": json.dumps({"permissionDecision": "allow"}).encode(),
    "arguments at the top": json.dumps({"updatedInput": {"text": "x"}, **ALLOW}).encode(),
    "words before a decision": b"checked\n" + json.dumps({"permissionDecision": "deny"}).encode(),
}


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize("printed", ENCODINGS.values(), ids=ENCODINGS.keys())
async def test_a_blocking_hook_blocks_in_every_encoding_of_its_answer(home: Path, printed: bytes):
    (home / "answer").write_bytes(printed)
    hook = {"type": "command", "command": f"cat {home / 'answer'}", "onError": "block"}
    settings = {
        "mcpServers": {"box": stdio_server("well_behaved.py")},
        "permissions": {"allow": ["mcp__box"]},
        "hooks": {"PreToolUse": [{"hooks": [hook]}]},
    }
    (home / ".dragoman").mkdir(exist_ok=True)
    (home / ".dragoman" / "settings.json").write_text(json.dumps(settings))
    async with Host.configured() as host:
        await host.ready(timeout=30)
        (tool, *_) = host.tools()
        outcome = await host.call(tool.name, {})
    assert outcome.is_error
    assert isinstance(outcome.error, PermissionRefused)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("https://2130706433/pay", "https://127.0.0.1/pay"),
        ("https://0x7f000001/", "https://127.0.0.1/"),
        ("https://0177.0.0.1/", "https://127.0.0.1/"),
        ("https://1.1/", "https://1.0.0.1/"),
        ("https://0x7f.1:8443/a/../b?x=1#part", "https://127.0.0.1:8443/a/../b?x=1#part"),
        ("https://EXAMPLE.com:443/a/../b?x=1#part", "https://EXAMPLE.com:443/a/../b?x=1#part"),
        ("https://example.com/a?b=c#/route", "https://example.com/a?b=c#/route"),
    ],
)
def test_a_url_is_shown_as_it_would_be_opened(written: str, shown: str):
    question = url_question("box", written, "please")
    assert question is not None
    assert question.url == shown


def test_adapters_take_no_longer_for_hostile_schemas_than_for_large_ones():
    large = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(1000)}}
    ordinary = _seconds([large] * 100)
    assert _seconds([ATTACKS[name] for name in islice(cycle(ATTACKS), 100)]) < 6 * ordinary


def _seconds(schemas: list[object]) -> float:
    tools = [tool(json.loads(json.dumps(schema)), name=f"t{number}") for number, schema in enumerate(schemas)]
    began = time.process_time()
    assert len(openai.chat_tools(tools)) == 100
    return time.process_time() - began


async def test_a_server_is_disconnected_by_disable_though_the_disk_is_full(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    write(home / ".dragoman" / "settings.json", {"mcpServers": {"box": stdio_server("well_behaved.py")}})
    async with Host.configured() as host:
        assert (await host.ready(timeout=30))["box"].status == "connected"
        with monkeypatch.context() as full:
            full.setattr(os, "fsync", _no_space)  # where delayed allocation reports the error
            with pytest.raises(ConfigError) as raised:
                await host.disable("box")
        assert "server 'box' is disabled in this host, but that could not be saved: " in str(raised.value)
        assert "No space left on device" in str(raised.value)
        assert host.servers["box"].status == "disabled"
        assert host.tools() == []


def _no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.requirement("PRM-6")
async def test_the_first_audit_entry_after_a_full_disk_is_kept(home: Path, monkeypatch: pytest.MonkeyPatch):
    folder = home / "logs"
    log = AuditLog(folder, lambda _: None, "session")
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[: len(data) // 2]))
    log.write(AuditEntry(tool="first"), {}, 0.0)
    log.close()
    monkeypatch.undo()
    log = AuditLog(folder, lambda _: None, "session")
    for name in ("second", "third"):
        log.write(AuditEntry(tool=name), {}, 0.0)
    log.close()
    assert [entry["tool"] for entry in read(folder)] == ["second", "third"]


async def test_a_server_that_a_reload_replaces_is_still_listed(home: Path):
    file = home / ".dragoman" / "settings.json"
    write(file, {"mcpServers": {"box": stdio_server("ignores_signals.py")}})
    async with Host.configured() as host:
        await host.ready(timeout=30)
        write(file, {"mcpServers": {"box": stdio_server("well_behaved.py")}})
        seen = [set(host.servers)]
        reloading = asyncio.create_task(host.reload())
        while not reloading.done():
            seen.append(set(host.servers))
            await asyncio.sleep(0)
        await host.ready(timeout=30)
        assert {frozenset(names) for names in seen} == {frozenset({"box"})}
        assert host.servers["box"].status == "connected"


def test_a_deleted_working_directory_is_reported_with_a_clear_error(
    home: Path, monkeypatch: pytest.MonkeyPatch
):
    gone = home / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    for make in (lambda: Host({}), lambda: Host({"box": stdio_server("well_behaved.py")}), Host.configured):
        with pytest.raises(ConfigError) as raised:
            make()
        assert str(raised.value) == "the working directory cannot be used: No such file or directory"
    monkeypatch.chdir(home)


SLICED = '{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no \\ud83d"}}'


@pytest.mark.requirement("PRM-5")
@pytest.mark.parametrize(
    "printed",
    [
        SLICED,
        f"{SLICED}{{}}",
        f"[{SLICED}]",
        '{"decision": "block", "x": 1e400}',
        '{"decision":"block","x":NaN}',
    ],
)
async def test_an_answer_that_cannot_be_parsed_completely_still_refuses(home: Path, printed: str):
    (home / "answer").write_text(printed)
    hook = {"type": "command", "command": f"cat {home / 'answer'}"}
    settings = {
        "mcpServers": {"box": stdio_server("well_behaved.py")},
        "permissions": {"allow": ["mcp__box"]},
        "hooks": {"PreToolUse": [{"hooks": [hook]}]},
    }
    write(home / ".dragoman" / "settings.json", settings)
    async with Host.configured() as host:
        await host.ready(timeout=30)
        outcome = await host.call(host.tools()[0].name, {})
    assert isinstance(outcome.error, PermissionRefused)
