"""T52: Variables in entries are substituted, never interpreted; and their values are shown nowhere."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman import Host
from dragoman.config.masking import COVER
from tests.e2e.forked import Terminal, run
from tests.servers import stdio_server
from tests.torture import projects
from tests.torture.projects import COMMANDS, invocations, servers, write

pytestmark = pytest.mark.requirement("CFG-4")

CANARY = "cAnArY"


# --- not a shell ---

VALUES = {
    "spaces": "a  b c",
    "lines": "a\nb\r\nc\n",
    "substitution": "$(touch hit) `touch hit`",
    "commands": "; touch hit; && touch hit | touch hit > hit",
    "globs and quotes": "* ? ~ '\"\\ {a,b}",
    "a variable": "${OTHER} $OTHER ${OTHER:-x}",
    "an option": "--help",
    "letters of the world": "ünï 文字 \U0001f642",
    "long": "x" * 100_000,
}


@pytest.mark.parametrize("what", VALUES)
async def test_t52_a_value_reaches_the_child_process_unchanged_as_one_argument(
    home: Path, what: str, monkeypatch: pytest.MonkeyPatch
):
    value = VALUES[what]
    monkeypatch.setenv("VALUE", value)
    monkeypatch.setenv("OTHER", "expanded twice")
    entry = stdio_server(
        "well_behaved.py", "${VALUE}", "<${VALUE}>", "${VALUE:-unused}", env={"GOT": "${VALUE}"}
    )
    async with Host({"box": entry}) as host:
        view = (await host.ready(timeout=30))["box"]
        assert view.status == "connected", view.reason
        words = Path(f"/proc/{view.pid}/cmdline").read_bytes().split(b"\0")[4:-1]
        given = Path(f"/proc/{view.pid}/environ").read_bytes().split(b"\0")
    assert words == [value.encode(), f"<{value}>".encode(), value.encode()]
    assert f"GOT={value}".encode() in given
    assert not Path("hit").exists()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("${VAR}", "value"),
        ("a${VAR}b${VAR}c", "avaluebvaluec"),
        ("${VAR:-x}", "value"),
        ("${NONE:-x}", "x"),
        ("${NONE:-}", ""),
        ("${NONE:-a b:-c$d}", "a b:-c$d"),
        ("${EMPTY:-x}", "x"),
        ("${EMPTY}", ""),
        ("${HOLDS}", "${VAR}"),
        ("${HOLDS:-x}", "${VAR}"),
        *(
            (text, text)
            for text in (
                "$VAR",
                "$$VAR",
                "$(VAR)",
                "%VAR%",
                "${}",
                "${1}",
                "${VAR",
                "${ VAR }",
                "${VAR%x}",
                "${VAR#x}",
                "${VAR/a/b}",
                "${VAR:0:1}",
                "${VAR:?x}",
                "${VAR:=x}",
                "${VAR:+x}",
                "${!VAR}",
                "${#VAR}",
                "${VAR-x}",
                "${VÄR}",
            )
        ),
    ],
)
def test_t52_variables_are_expanded_as_documented(written: str, meant: str, monkeypatch: pytest.MonkeyPatch):
    for name, value in {"VAR": "value", "EMPTY": "", "HOLDS": "${VAR}"}.items():
        monkeypatch.setenv(name, value)
    given = {"box": {"command": "x", "args": [written], "env": {"A": written}}}
    server = projects.seen(given=given).servers["box"]
    assert server.config is not None, server.reason
    assert server.config.args == (meant,)
    assert server.config.env == {"A": meant}


BROKEN = {
    "missing": "${NONE}",
    "missing beside one that is there": "${VAR} ${NONE}",
    "nested": "${NONE:-${VAR}}",
    "nested, though not needed": "${VAR:-${VAR}}",
    "nested twice": "${NONE:-${NONE:-${VAR}}}",
}


@pytest.mark.parametrize("what", BROKEN)
@pytest.mark.parametrize("field", ["args", "env", "headers", "url", "cwd"])
async def test_t52_an_entry_that_cannot_be_expanded_fails_that_server_only(
    home: Path, what: str, field: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VAR", CANARY)
    value: Any = BROKEN[what]
    remote = {"url": "https://box.example.com/"}
    entry: dict[str, Any] = {
        "args": {"command": "x", "args": ["a", value]},
        "env": {"command": "x", "env": {"A": value}},
        "headers": {**remote, "headers": {"A": value}},
        "url": {"url": f"https://box.example.com/{value}"},
        "cwd": {"command": "x", "cwd": value},
    }[field]
    file = projects.user(home, servers(good=stdio_server("well_behaved.py"), box=entry))
    async with Host.configured() as host:
        views = await host.ready(timeout=30)
        assert views["good"].status == "connected"
        assert views["box"].status == "failed"
        reason = str(views["box"].reason)
    assert "NONE" in reason or "VAR" in reason
    assert str(file) in reason
    assert "line " in reason
    assert field in reason
    assert CANARY not in reason


def test_t52_a_nul_character_is_refused(home: Path):
    projects.user(
        home, servers(good=stdio_server("well_behaved.py"), box={"command": "x", "args": ["${NONE:-a\0b}"]})
    )
    found = projects.seen().servers
    assert found["good"].eligibility == "ready"
    assert found["box"].eligibility == "broken"


# --- shown nowhere ---


def planted() -> dict[str, Any]:
    """Every field in which people keep secrets, as a literal value and as a variable."""
    calm = stdio_server("well_behaved.py")["args"]
    return {
        "stdio": {
            "command": sys.executable,
            "args": [*calm, "${S_ARG}", "--token", f"{CANARY}1", f"--api-key={CANARY}2", "--url=${S_ARG}"],
            "env": {"A": "${S_ENV}", "B": f"{CANARY}3", "C": f"${{S_NONE:-{CANARY}4}}"},
        },
        "query": {"url": f"https://box.example.com/mcp?key={CANARY}5&k=${{S_URL}}&plain={CANARY}6"},
        "headers": {
            "type": "http",
            "url": "https://${S_URL}.example.com/${S_URL}/mcp",
            "headers": {
                "Authorization": f"Bearer {CANARY}7",
                "X-Key": "${S_HEADER}",
                "X-Plain": f"{CANARY}8",
            },
            "oauth": {"clientId": "me", "clientSecret": f"{CANARY}9"},
        },
        "userinfo": {"type": "sse", "url": f"https://me:{CANARY}10@box.example.com/"},
        "unknown": {"command": "true", "apiToken": f"{CANARY}11", "more": {"password": f"{CANARY}12"}},
        "wrong": {"command": "true", "env": [f"TOKEN={CANARY}13"], "headers": {"A": [f"{CANARY}14"]}},
    }


@pytest.fixture
def secrets(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    for name in ("S_ARG", "S_ENV", "S_URL", "S_HEADER"):
        monkeypatch.setenv(name, f"{CANARY}-{name.lower()[2:]}")
    entries = planted()
    projects.user(home, servers(**entries))
    # Variables only: the question about a pending entry shows all of it, so that nothing is hidden.
    write(home / "work" / ".mcp.json", servers(pending={"command": "x", "args": ["${S_ARG}"]}))
    write(
        home / "work" / ".dragoman" / "settings.local.json",
        servers(alike={"command": "true", "env": entries["stdio"]["env"]}),
    )
    projects.approve(home / "work" / ".dragoman" / "settings.local.json", "alike")
    return [*entries, "pending", "alike"]


SHOWING = ("mcp get", "config explain", "mcp export", "mcp approve")
"""Commands that show entries: tested with the name of every server, the others with two."""


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_t52_no_command_prints_a_secret(secrets: list[str], command: str):
    for words in invocations(command, secrets if command in SHOWING else secrets[:2]):
        done = run(*words)
        assert CANARY not in done.stdout, words
        assert CANARY not in done.stderr, words
        assert "Traceback" not in done.stderr, words


@pytest.mark.slow
@pytest.mark.parametrize("command", ["mcp list", "mcp get", "tools list", "config explain", "call"])
def test_t52_no_command_in_a_terminal_prints_a_secret(secrets: list[str], command: str):
    for words in invocations(command, secrets[:2]):
        with Terminal(*words) as terminal:
            output = terminal.finish(answering=b"\x04")
        assert CANARY not in output, words


def test_t52_variables_are_shown_unexpanded(secrets: list[str]):
    shown = json.loads(run("mcp", "get", "stdio", "--no-health", "--json").stdout)["entry"]
    assert shown["args"][-5:] == ["${S_ARG}", "--token", COVER, f"--api-key={COVER}", "--url=${S_ARG}"]
    assert shown["env"] == {"A": "${S_ENV}", "B": COVER, "C": f"${{S_NONE:-{COVER}}}"}
    shown = json.loads(run("mcp", "get", "headers", "--no-health", "--json").stdout)["entry"]
    assert shown["url"] == "https://${S_URL}.example.com/${S_URL}/mcp"
    assert shown["headers"] == {"Authorization": COVER, "X-Key": "${S_HEADER}", "X-Plain": COVER}


FAILING: dict[str, dict[str, Any]] = {
    "type": {"type": "${SECRET}", "url": "https://box.example.com/"},
    "protocol": {"command": "true", "protocol": "${SECRET}"},
    # Not `command` and `cwd`: a person who corrects them has to see the program and the folder.
    "number": {"command": "true", "timeout": "${SECRET}"},
    "no URL": {"url": "${SECRET}"},
    "scheme": {"url": "${SECRET}://box.example.com/"},
    "port": {"url": "https://box.example.com:${SECRET}/"},
    "host": {"url": "https://box..${SECRET}/"},
    "userinfo": {"url": "https://u:${SECRET}@box.example.com/"},
    "fragment": {"url": "https://box.example.com/#${SECRET}"},
    "fragment, written out": {"url": f"https://box.example.com/#access_token={CANARY}"},
    "header": {"url": "https://box.example.com/", "headers": {"A": "${SECRET}\n"}},
    "dies": stdio_server("exits.py", "start", "3", env={"A": "${SECRET}"}),
    "tools": {"command": "true", "enabledTools": "${SECRET}"},
}


@pytest.mark.parametrize("what", FAILING)
def test_t52_no_error_contains_the_value_of_a_variable(
    home: Path, what: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET", CANARY)
    projects.user(home, servers(box=FAILING[what]))
    for words in (["tools"], ["mcp", "list"], ["mcp", "get", "box", "--json"], ["config", "explain"]):
        done = run(*words)
        assert "box" in done.stdout + done.stderr
        assert CANARY not in done.stdout + done.stderr, words


TYPED_WRONGLY = [
    ["mcp", "add", "box", "https://box.example.com/", "-H", f"Authorization Bearer {CANARY}"],
    ["mcp", "add", "box", "-e", CANARY, "true"],
    ["mcp", "add", "box", "true", f"--env=TOKEN={CANARY}"],
    ["mcp", "add", "box", "true", f"--header=Authorization: {CANARY}"],
    ["mcp", "add", "box", "https://box.example.com/", CANARY],
    ["mcp", "add", "box", f"https://me:{CANARY}@box.example.com/"],
    ["mcp", "add", "--client-secret", CANARY, "-s", "project", "box", "https://box.example.com/"],
    ["mcp", "add-json", "box", f'{{"command": "true", "env": {{"A": "{CANARY}"}}'],
    ["mcp", "add-json", "box", f'["{CANARY}"]'],
    ["mcp", "add-json", "box", f'{{"command": "true", "env": ["{CANARY}"]}}'],
    ["tools", "--mcp-config", f'{{"mcpServers": {{"a": {{"env": {{"A": "{CANARY}"}}}}}}'],
]


@pytest.mark.parametrize("words", TYPED_WRONGLY, ids=range(len(TYPED_WRONGLY)))
def test_t52_a_usage_error_does_not_repeat_the_secret(words: list[str]):
    """Output is kept in logs where the command line is not."""
    done = run(*words)
    assert CANARY not in done.stdout + done.stderr


def test_t52_no_repr_contains_a_secret(home: Path, secrets: list[str]):
    """A repr appears in logs, in tracebacks, and in the reports of test runners."""
    configuration = projects.seen(given={"coded": planted()["stdio"]})
    for server in configuration.servers.values():
        assert CANARY not in repr(server.config)
        assert CANARY not in repr(server)
    assert CANARY not in repr(configuration.sources)
    assert CANARY not in repr(configuration)
