"""The register of requirements. Tests that show one claim it with a mark.

A test claims a requirement with `@pytest.mark.requirement("TRN-1")`; `claims_by_requirement` collects the
claims. A row without `missing` says that the requirement is met, and needs at least one test:
`tests/unit/test_requirements_register.py` checks both directions. `python -m tests.requirements` prints the
state.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHAPTERS = {
    "CFG": "Configuration",
    "TRN": "Transports",
    "LIF": "Lifecycle",
    "CAT": "Catalogue",
    "CAL": "Calls",
    "PRM": "Permission and hooks",
    "AUT": "Sign-in",
    "ASK": "What servers may ask",
    "AGT": "The agent",
    "CLI": "Command line",
    "GWY": "Gateway",
    "LIB": "Library",
}


@dataclass(frozen=True)
class Requirement:
    id: str
    title: str
    beyond: bool = False
    """Goes beyond the sources the requirements were drawn from: `(+)`."""
    missing: str = ""
    """What of it is not there yet. Empty: it is met."""


_ROWS = [
    # --- Configuration ---
    Requirement("CFG-1", "seven scopes, the higher replaces; every server knows its file and scope"),
    Requirement("CFG-2", "the files, where they are looked for, and the two variables that move them"),
    Requirement("CFG-3", "enterprise is exclusive"),
    Requirement(
        "CFG-4", "${VAR} and ${VAR:-default} expand in every string; a missing one fails that server alone"
    ),
    Requirement("CFG-5", "server types and fields; unknown fields are kept and warned about"),
    Requirement("CFG-6", "duplicates by signature are dropped and reported"),
    Requirement("CFG-7", "allow and deny policy by name, URL and command; deny wins, in every scope"),
    Requirement("CFG-8", "project servers need approval, bound to a fingerprint of the entry"),
    Requirement("CFG-9", "one table of settings, from environment, files and managed settings"),
    Requirement("CFG-10", "writes are atomic and keep what they do not understand; broken files are named"),
    Requirement("CFG-11", "configuration is live", beyond=True),
    Requirement("CFG-12", "import from and export to other hosts", beyond=True),
    Requirement("CFG-13", "agents' own servers: by name, inline, required"),
    # --- Transports ---
    Requirement(
        "TRN-1",
        "stdio: own group, minimal environment, stderr ring, no orphan; 2 s to end if used, then 600 ms",
    ),
    Requirement("TRN-2", "streamable HTTP, every revision"),
    Requirement("TRN-3", "HTTP+SSE of 2024-11-05"),
    Requirement("TRN-4", "WebSocket with headers, proxy, TLS and client certificates"),
    Requirement("TRN-5", "in-process: a linked pair; takes SDK and FastMCP server objects"),
    Requirement("TRN-6", "sdk: JSON-RPC inside an embedding program's control messages"),
    Requirement("TRN-7", "sse-ide and ws-ide through lockfiles, with an allow-list of tools"),
    Requirement(
        "TRN-8",
        "claudeai-proxy with the user's bearer",
        missing="the bearer of a sign-in; a program hands one in for now",
    ),
    Requirement(
        "TRN-9",
        "each HTTP request has 60 s, a call its own limit, streams none; size limits are named errors",
    ),
    Requirement("TRN-10", "revision negotiation is automatic, remembered, and can be pinned"),
    # --- Lifecycle ---
    Requirement(
        "LIF-1", "states with reasons and phases; every change is an event; one pure transition table"
    ),
    Requirement(
        "LIF-2",
        "start-up order; turns of at most 1 s to connect: one slow or broken server never delays another",
    ),
    Requirement("LIF-3", "connecting has 30 s, then a cause a person can act on"),
    Requirement("LIF-4", "one live connection per server; concurrent callers share one connect"),
    Requirement("LIF-5", "a lost connection reconnects with backoff; calls wait meanwhile"),
    Requirement("LIF-6", "three terminal errors in a row reconnect; refused at once"),
    Requirement("LIF-7", "a lost session re-connects and retries the call once"),
    Requirement("LIF-8", "list changes refresh that list alone; bursts are merged"),
    Requirement("LIF-9", "enable, disable, reconnect while running; disabling is remembered"),
    Requirement("LIF-10", "shutdown is parallel and bounded; nothing hangs"),
    Requirement("LIF-11", "lazy stdio servers", beyond=True),
    # --- Catalogue ---
    Requirement("CAT-1", "names mcp__server__tool: cleaned, at most 64 characters, never shared"),
    Requirement("CAT-2", "text from servers is cleaned of invisible and control characters"),
    Requirement("CAT-3", "descriptions and instructions are cut at 2 048 characters, visibly"),
    Requirement("CAT-4", "annotations and their defaults"),
    Requirement("CAT-5", "tools/list is paged, bounded and cached"),
    Requirement("CAT-6", "one pool of built-in and MCP tools, in a stable order"),
    Requirement("CAT-7", "deferred tools and tool_search"),
    Requirement("CAT-8", "server instructions in the system prompt; delta mode"),
    Requirement("CAT-9", "resources: listed, read, subscribed, mentioned"),
    Requirement("CAT-10", "prompts are slash commands"),
    Requirement("CAT-11", "rug pulls are marked and asked again", beyond=True),
    Requirement(
        "CAT-12",
        "tools for apps only are neither offered to models nor found by them; pages reach programs",
        beyond=True,
    ),
    # --- Calls ---
    Requirement("CAL-1", "one visible pipeline for built-in and MCP tools"),
    Requirement("CAL-2", "time limits; cancelling tells the server and returns at once"),
    Requirement("CAL-3", "progress reaches the caller"),
    Requirement("CAL-4", "read-only tools of one turn run in parallel, others in order"),
    Requirement("CAL-5", "errors by kind: a table of what to do"),
    Requirement("CAL-6", "isError is an outcome; the host never crashes because of a server"),
    Requirement("CAL-7", "results of every kind; too large ones are saved and described"),
    Requirement("CAL-8", "tasks look like ordinary calls and survive a restart", beyond=True),
    # --- Permission and hooks ---
    Requirement("PRM-1", "allow, ask and deny rules in every scope"),
    Requirement("PRM-2", "permission modes"),
    Requirement("PRM-3", "without a rule, MCP tools are asked; the question and its answers"),
    Requirement("PRM-4", "the shell tool takes commands apart"),
    Requirement("PRM-5", "hooks as commands, HTTP calls and Python functions"),
    Requirement("PRM-6", "every decision can be explained; an audit log", beyond=True),
    # --- Sign-in ---
    Requirement("AUT-1", "OAuth 2.1 for sse and http"),
    Requirement("AUT-2", "tokens in the keychain, or in a file, said aloud"),
    Requirement("AUT-3", "refresh: early, on 401, one in flight across processes"),
    Requirement("AUT-4", "step-up on insufficient_scope"),
    Requirement("AUT-5", "sign-out revokes and forgets"),
    Requirement("AUT-6", "needs-auth is remembered 15 minutes"),
    Requirement("AUT-7", "the pseudo-tool authenticate"),
    Requirement("AUT-8", "XAA: one browser visit serves many servers"),
    Requirement("AUT-9", "headersHelper"),
    Requirement("AUT-10", "client credentials; device or paste-the-code flow", beyond=True),
    Requirement("AUT-11", "nothing secret in logs, errors, reprs, transcripts, process listings"),
    # --- What servers may ask ---
    Requirement("ASK-1", "elicitation, form mode"),
    Requirement("ASK-2", "elicitation, URL mode"),
    Requirement("ASK-3", "hooks answer before a person; one question at a time"),
    Requirement("ASK-4", "sampling"),
    Requirement("ASK-5", "roots"),
    Requirement("ASK-6", "logging: a level for each server, messages in its log and in events"),
    # --- The agent ---
    Requirement("AGT-1", "conversation, and one-shot with -p"),
    Requirement("AGT-2", "any model provider; without a key a clear sentence"),
    Requirement("AGT-3", "built-in tools"),
    Requirement("AGT-4", "slash commands"),
    Requirement("AGT-5", "transcripts are kept and can be resumed"),
    # --- Command line ---
    Requirement("CLI-1", "dragoman mcp add and its family"),
    Requirement(
        "CLI-2",
        "tools, call, resources, prompts, logs, doctor …; --json, stable exit codes",
        missing="doctor",
    ),
    Requirement("CLI-3", "a first command that works with no configuration, no key and no network"),
    Requirement("CLI-4", "doctor says what is wrong and what to do", beyond=True, missing="no test shows it"),
    # --- Gateway ---
    Requirement("GWY-1", "dragoman serve: the whole catalogue as one MCP server"),
    Requirement("GWY-2", "elicitation, sampling, roots, progress, logging, cancellation pass through"),
    Requirement("GWY-3", "sign-in for callers, upstream tokens of their own; no token is passed through"),
    Requirement("GWY-4", "more than one machine", beyond=True),
    Requirement("GWY-5", "a web console", beyond=True, missing="no test shows it"),
    Requirement("GWY-6", "response caching"),
    # --- Library ---
    Requirement("LIB-1", "Host: tools, call, events, servers; typed, quick to import"),
    Requirement("LIB-2", "tools in the shape agents want"),
    Requirement(
        "LIB-3",
        "interfaces for a program's own parts, and test helpers in dragoman.testing",
        missing="public names for token stores and transports of a program's own",
    ),
    Requirement("LIB-4", "OpenTelemetry spans; trace context passed on"),
]
REQUIREMENTS = {row.id: row for row in _ROWS}


def claims_by_requirement(tests: Path = Path(__file__).parent) -> dict[str, list[str]]:
    """Requirement id → the node ids, without parameters, of the tests below the folder that claim it. The
    files are parsed, not imported."""
    claims: dict[str, list[str]] = {}
    for path in sorted(tests.rglob("test_*.py")):
        module = ast.parse(path.read_text())
        name = path.relative_to(tests.parent).as_posix()
        for test, ids in _claims_below(module, name, _module_ids(module)):
            for id in sorted(ids):
                claims.setdefault(id, []).append(test)
    return claims


def _claims_below(
    node: ast.Module | ast.ClassDef, name: str, inherited: set[str]
) -> Iterator[tuple[str, set[str]]]:
    for child in node.body:
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if child.name.startswith("test"):
                yield f"{name}::{child.name}", inherited | set(_ids_in(*child.decorator_list))
            case ast.ClassDef() if child.name.startswith("Test"):
                own = inherited | set(_ids_in(*child.decorator_list))
                yield from _claims_below(child, f"{name}::{child.name}", own)
            case _:
                pass


def _module_ids(module: ast.Module) -> set[str]:
    """`pytestmark = pytest.mark.requirement(…)` at the top of a file holds for all its tests."""
    values = [
        node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        and any(ast.unparse(target) == "pytestmark" for target in node.targets)
    ]
    return set(_ids_in(*values))


def _ids_in(*expressions: ast.expr) -> Iterator[str]:
    for expression in expressions:
        for node in ast.walk(expression):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.requirement":
                yield from (ast.literal_eval(argument) for argument in node.args)


def main() -> None:
    tests = claims_by_requirement()
    for prefix, chapter in CHAPTERS.items():
        rows = [row for row in _ROWS if row.id.startswith(f"{prefix}-")]
        print(f"\n{chapter}: {sum(not row.missing for row in rows)} of {len(rows)}")
        for row in rows:
            count = len(tests.get(row.id, ()))
            state = f"{count:>3} tests" if count else "        –"
            missing = f" [missing: {row.missing}]" if row.missing else ""
            print(f"  {row.id:<7}{state}  {row.title}{' (+)' if row.beyond else ''}{missing}")
    print(f"\n{sum(not row.missing for row in _ROWS)} of {len(_ROWS)} are met")


if __name__ == "__main__":
    main()
