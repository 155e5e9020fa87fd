"""T508: a deny rule about an argument is not avoided by a NUL, at which many programs end a text, nor by
comments, which separate words in SQL."""

import time

import pytest

from dragoman import Host
from dragoman.permissions.patterns import Glob
from dragoman.testing import InMemoryServer

pytestmark = pytest.mark.requirement("PRM-2")

DENIED = {
    "/etc/passwd": ["/etc/passwd\0.png", "/etc/passwd%00.png", "/etc/passwd%2500.png", "/etc/x/../passwd\0"],
    "*drop table*": [
        "drop/**/table x",
        "DROP /* a */\n/* b */ TABLE x",
        "drop--\ntable x",
        "drop -- a\n table x",
        "1;drop/***/table x",
        "drop table/*",
    ],
}


@pytest.mark.parametrize(
    ("pattern", "text"), [(pattern, text) for pattern, texts in DENIED.items() for text in texts]
)
async def test_t508_a_call_with_a_nul_or_comments_is_denied(pattern: str, text: str):
    server, calls = InMemoryServer("box"), list[str]()
    server.add_tool("run", lambda arguments, context: calls.append(arguments["text"]) or "done")
    rules = {"allow": ["mcp__box"], "deny": [f'mcp__box__run(text="{pattern}")']}
    async with Host({"box": server}, rules=rules) as host:
        await host.ready(timeout=20)
        await host.call("mcp__box__run", {"text": text})
    assert calls == []


@pytest.mark.parametrize("text", ["/etc/passwd.png", "drop the /* table */ mat", "drop -- table"])
def test_t508_texts_with_other_words_are_not_denied(text: str):
    assert not Glob.plainly("/etc/passwd").fits_loosely(text)
    assert not Glob.plainly("drop table*").fits_loosely(text)


@pytest.mark.parametrize("part", ["/*", "/**", "--", "*/", "/*\0"])
def test_t508_unterminated_comments_are_checked_quickly(part: str):
    began = time.process_time()
    assert not Glob.plainly("*drop table*").fits_loosely(part * 300_000)
    assert time.process_time() - began < 3
