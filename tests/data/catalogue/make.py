"""A catalogue of more than 2 000 tools, and 200 questions with known answers.

I own: `definitions()`, the real servers' tools as they were collected (`real.json.gz`) followed by those that
`products.txt` describes, and `questions()` about them, written by hand in three files: `queries.txt` (half of
it held out while the ranking was made), `fresh.txt` and `drawn.txt` (asked when it was done). Everything
here is the same every time.

    .venv/bin/python -m tests.data.catalogue.make            says what there is
    .venv/bin/python -m tests.data.catalogue.make collect    lists the real servers' tools again
"""

from __future__ import annotations

import asyncio
import fnmatch
import gzip
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.json import decode, encode

from dragoman.catalog.naming import qualify
from dragoman.catalog.tools import ServerTool
from dragoman.names import ServerName
from dragoman.wire.messages import ToolDefinition

HERE = Path(__file__).parent
REAL = HERE / "real.json.gz"
MANIFEST = HERE.parents[2] / ".cache" / "interop" / "manifest.json"

Definition = dict[str, Any]


class Question(NamedTuple):
    text: str
    answers: frozenset[tuple[str, str]]
    """Every tool, as server and wire name, that would be a right answer."""
    is_held_out: bool
    """Whether it was kept aside while the ranking was made."""


@cache
def definitions() -> tuple[tuple[str, Definition], ...]:
    """Every tool as its server would list it, with the server's name."""
    real = json.loads(gzip.decompress(REAL.read_bytes()))
    collected = [(one.pop("server"), one) for one in real]
    return (*collected, *_products((HERE / "products.txt").read_text()))


def tools() -> list[ServerTool]:
    """The same as a host offers them."""
    named = [(ServerName(server), decode(encode(one), type=ToolDefinition)) for server, one in definitions()]
    return [ServerTool(server, qualify(server, one.name), one) for server, one in named]


def questions(file: str = "queries.txt") -> list[Question]:
    """Of two questions that follow each other, one is held out."""
    known = [(server, definition["name"]) for server, definition in definitions()]
    lines = [line for line in (HERE / file).read_text().splitlines() if line and line[0] != "#"]
    return [_question(line, known, bool(number % 2)) for number, line in enumerate(lines)]


def _question(line: str, known: list[tuple[str, str]], is_held_out: bool) -> Question:
    text, _, answers = line.partition(" => ")
    found: set[tuple[str, str]] = set()
    for pattern in answers.split():
        matches = {one for one in known if fnmatch.fnmatchcase(f"{one[0]}/{one[1]}", pattern)}
        if not matches:
            raise ValueError(f"{text!r}: nothing is called {pattern}")
        found |= matches
    return Question(text, frozenset(found), is_held_out)


# From products.txt to definitions.

VERBS = {"c": "create", "g": "get", "l": "list", "u": "update", "d": "delete", "s": "search"}
MANNERS: dict[str, tuple[str, ...]] = {
    "create": (
        "Create a new {noun}. {Gloss}.",
        "Creates {a} in {product} and returns it.",
        "Add {a}: {gloss}.",
        "Make a new {product} {noun} ({gloss}).",
        "Create {a} in {product}. Returns the identifier of the {noun}.",
    ),
    "get": (
        "Get one {noun} by its identifier.",
        "Returns the details of {a}, {gloss}.",
        "Retrieve a single {noun} from {product}.",
        "Show {a} with all its fields.",
        "Fetch {a} ({gloss}).",
    ),
    "list": (
        "List {plural}, newest first, one page at a time.",
        "Lists the {plural} in {product}.",
        "Get all {plural}; each is {gloss}.",
        "Show {plural} of {product}, optionally filtered.",
        "List {plural} with paging.",
    ),
    "update": (
        "Change fields of {a}. Fields that are not given stay as they are.",
        "Updates an existing {noun} in {product}.",
        "Edit {a}, {gloss}.",
        "Modify {a}.",
        "Update the given fields of {a} in {product}.",
    ),
    "delete": (
        "Delete {a}. This cannot be undone.",
        "Deletes {a} from {product}.",
        "Remove {a} for good.",
        "Delete {a} by its identifier.",
        "Permanently remove {a} ({gloss}).",
    ),
    "search": (
        "Search {plural} by text.",
        "Searches the {plural} in {product} and returns the best matches.",
        "Find {plural} that match a query.",
        "Look for {plural} by words or field values.",
        "Search for {plural} in {product}; each is {gloss}.",
    ),
}
ABOUT = {
    "limit": "How many to return at most",
    "cursor": "Where to continue, from an earlier answer",
    "query": "What to look for",
    "email": "Email address",
    "due_date": "Day by which it is due, as YYYY-MM-DD",
    "assignee": "Who works on it",
    "labels": "Labels to put on it",
    "priority": "How urgent it is",
    "namespace": "Namespace; the default one if left out",
    "start": "When it begins, ISO 8601",
    "end": "When it ends, ISO 8601",
    "owner": "Owner of the repository or object",
    "repo": "Name of the repository",
    "sql": "The SQL statement",
    "url": "Address, with https://",
    "path": "Path of the file",
    "color": "Colour as a name or hex value",
    "attendees": "Email addresses of those who take part",
}
NUMBERS = {"limit", "count", "amount", "quantity", "replicas", "days", "minutes", "percent", "port", "line"}


class _Noun(NamedTuple):
    noun: str
    plural: str
    gloss: str
    verbs: str
    fields: list[str]


def _products(text: str) -> Iterator[tuple[str, Definition]]:
    server, product, spelling, manner = "", "", "", 0
    for line in filter(None, text.splitlines()):
        if line[0] == "@":
            server, product, spelling, number = (part.strip() for part in line[1:].split("|"))
            manner = int(number)
        elif line[0] == "!":
            yield server, _special(line[1:].strip())
        elif line[0] != "#":
            noun = _noun(line)
            for code in noun.verbs:
                yield server, _regular(VERBS[code], noun, server, product, spelling, manner)


def _noun(line: str) -> _Noun:
    head, verbs, fields = (part.strip() for part in line.split("|"))
    names, _, gloss = head.partition(": ")
    noun, _, plural = names.partition(" / ")
    return _Noun(noun, plural, gloss, verbs, [field.strip() for field in fields.split(",")])


def _regular(verb: str, noun: _Noun, server: str, product: str, spelling: str, manner: int) -> Definition:
    words = [verb, *(noun.plural if verb in ("list", "search") else noun.noun).lower().split()]
    article = "an" if noun.noun[0].lower() in "aeiou" else "a"
    description = MANNERS[verb][manner].format(
        noun=noun.noun,
        plural=noun.plural,
        gloss=noun.gloss,
        Gloss=noun.gloss[0].upper() + noun.gloss[1:],
        product=product,
        a=f"{article} {noun.noun}",
    )
    own = f"{noun.noun.replace(' ', '_')}_id"
    parameters = {
        "create": noun.fields,
        "get": [own],
        "list": [*(f"{field}?" for field in noun.fields[:2]), "limit?", "cursor?"],
        "update": [own, *(f"{field}?" for field in noun.fields)],
        "delete": [own],
        "search": ["query", "limit?"],
    }[verb]
    name = _spelled(words, spelling, server)
    return _definition(name, description, parameters, noun.noun, reads=verb in ("get", "list", "search"))


def _spelled(words: list[str], spelling: str, server: str) -> str:
    match spelling:
        case "camel":
            return words[0] + "".join(word.capitalize() for word in words[1:])
        case "kebab":
            return "-".join(words)
        case "prefix":
            return "_".join([server, *words])
        case _:
            return "_".join(words)


def _special(line: str) -> Definition:
    match = re.fullmatch(r"([\w-]+): (.+) \(([^()]*)\)", line)
    assert match, line
    name, description, parameters = match.groups()
    named = [part.strip() for part in parameters.split(",") if part.strip()]
    return _definition(name, description, named, None)


def _definition(
    name: str, description: str, parameters: list[str], noun: str | None, *, reads: bool = False
) -> Definition:
    properties = {one.rstrip("?"): _parameter(one.rstrip("?"), noun) for one in parameters}
    schema: Definition = {"type": "object", "properties": properties}
    if required := [one for one in parameters if not one.endswith("?")]:
        schema["required"] = required
    schema["additionalProperties"] = False
    made: Definition = {"name": name, "description": description, "inputSchema": schema}
    return made | ({"annotations": {"readOnlyHint": True}} if reads else {})


def _parameter(name: str, noun: str | None) -> Definition:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower()
    if name.endswith("_id") and noun and name == f"{noun.replace(' ', '_')}_id":
        about = f"Identifier of the {noun}"
    else:
        about = ABOUT.get(name) or (f"The {words} of the {noun}" if noun else words.capitalize())
    if name in NUMBERS:
        return {"type": "integer", "minimum": 0, "description": about}
    if name in ("labels", "attendees", "members", "assignees", "tags"):
        return {"type": "array", "items": {"type": "string"}, "description": about}
    return {"type": "string", "description": about}


# The real servers.


async def collect() -> None:
    """Lists the tools of the servers in `.cache/interop/manifest.json`; others stay as they were."""
    from dragoman import Host

    manifest = json.loads(MANIFEST.read_text())
    with tempfile.TemporaryDirectory() as folder:
        arguments = {"server-filesystem": [folder]}
        environment = {"server-github": {"GITHUB_PERSONAL_ACCESS_TOKEN": "none"}}
        entries: dict[str, Any] = {}
        for name in [name for name in manifest if name.startswith(("server-", "mcp-server-"))]:
            program, *rest = manifest[name]["command"]
            own = name.removeprefix("mcp-").removeprefix("server-")
            args = [*rest, *arguments.get(name, [])]
            entries[own] = {"command": program, "args": args, "env": environment.get(name, {})}
        async with Host(entries) as host:
            await host.ready(60)
            listed = [{"server": tool.server, **tool.as_listed()} for tool in host.tools()]
    before = json.loads(gzip.decompress(REAL.read_bytes())) if REAL.exists() else []
    seen = {one["server"] for one in listed}
    together = sorted(
        [*listed, *(one for one in before if one["server"] not in seen)],
        key=lambda one: (one["server"], one["name"]),
    )
    REAL.write_bytes(gzip.compress(json.dumps(together, separators=(",", ":")).encode(), 9, mtime=0))


def main() -> None:
    if sys.argv[1:] == ["collect"]:
        asyncio.run(collect())
    servers = {server for server, _ in definitions()}
    counts = {file: len(questions(file)) for file in ("queries.txt", "fresh.txt", "drawn.txt")}
    print(f"{len(definitions())} tools of {len(servers)} servers; questions: {counts}")


if __name__ == "__main__":
    main()
