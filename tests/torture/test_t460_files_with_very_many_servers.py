"""T460: the file of another client with very many servers is parsed a constant number of times, not once
for each server."""

import json
import tomllib
from collections.abc import Callable
from typing import Any

import pytest

from dragoman.config import jsonc
from dragoman.config.interchange import files
from dragoman.config.interchange.formats import FORMATS, read, write

pytestmark = pytest.mark.requirement("CFG-12")

COUNT = 200
SERVERS = {f"s{i}": {"command": "node", "args": [f"{i}.js"], "env": {"K": str(i)}} for i in range(COUNT)}
OTHERS = {name: {**entry, "args": ["other.js"]} for name, entry in SERVERS.items()}


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of characters of each parse."""
    counted: list[int] = []

    def counting(parse: Callable[..., Any]) -> Callable[..., Any]:
        def counted_parse(text: str, **options: Any) -> Any:
            counted.append(len(text))
            return parse(text, **options)

        return counted_parse

    monkeypatch.setattr(jsonc, "scan", counting(jsonc.scan))
    monkeypatch.setattr(files.tomllib, "loads", counting(tomllib.loads))
    return counted


@pytest.mark.parametrize("host", sorted(FORMATS))
def test_t460_the_number_of_parses_does_not_grow_with_the_number_of_servers(host: str, parsed: list[int]):
    half = {name: SERVERS[name] for name in list(SERVERS)[: COUNT // 2]}
    begun = write(host, None, half, source="x")
    written = write(host, begun.text, SERVERS, source="x")
    replaced = write(host, written.text, OTHERS, source="x", replace=OTHERS)
    assert (len(begun.written), len(written.written), len(replaced.written)) == (100, 100, COUNT)
    assert sum(parsed) < 40 * len(replaced.text)
    found = read(host, replaced.text, source="x", project=None).servers
    assert {name: entry["args"] for name, entry in found.items()} == {name: ["other.js"] for name in SERVERS}


@pytest.mark.parametrize("host", sorted(FORMATS))
def test_t460_writing_all_servers_at_once_gives_the_same_text_as_one_by_one(host: str):
    changes = {**{name: OTHERS[name] for name in ("s3", "s1")}, **{n: SERVERS[n] for n in ("s7", "s8", "s9")}}
    begun = write(host, None, {name: SERVERS[name] for name in ("s1", "s2", "s3")}, source="x").text
    at_once = write(host, begun, changes, source="x", replace=changes)
    text = begun
    for name, entry in changes.items():
        text = write(host, text, {name: entry}, source="x", replace=changes).text
    assert at_once.text == text


@pytest.mark.parametrize(
    "begun",
    [
        "{}",
        '{"mcpServers": {}}',
        '{"mcpServers": null}',
        '{"mcpServers": {"s1": {"command": "old"}, "s2": {"command": "c"}}}',
        '{\r\n\t"mcpServers": {\r\n\t\t"s1": {\r\n\t\t\t"command": "old"\r\n\t\t}\r\n\t}\r\n}\r\n',
    ],
)
def test_t460_writing_all_servers_at_once_keeps_each_layout(begun: str):
    changes = {name: SERVERS[name] for name in ("s1", "s5", "s6")}
    at_once = write("claude-code", begun, changes, source="x", replace=changes).text
    text = begun
    for name, entry in changes.items():
        text = write("claude-code", text, {name: entry}, source="x", replace=changes).text
    assert at_once == text
    assert set(changes) <= set(json.loads(text)["mcpServers"])
