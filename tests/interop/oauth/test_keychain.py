"""Secrets in a real keychain: gnome-keyring on a D-Bus of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import DRAGOMAN
from tests.e2e.sign_in_site import SignInSite

Part = Callable[..., dict[str, Any]]
UNLOCKED = 'printf "\\n" | gnome-keyring-daemon --unlock --components=secrets >/dev/null; exec "$@"'
"""Runs its arguments where a keychain is unlocked."""


def in_keychain(part: Part, home: Path, *words: str, unlocked: bool = True) -> str:
    """The output of a program in a session with a keychain of its own. The keychain ends with the session."""
    run, data = home / "run", home / "data"
    for folder in (run, data):
        folder.mkdir(mode=0o700, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHON_KEYRING_BACKEND"}
    entry = part("keychain")
    inner = ["bash", "-c", UNLOCKED, "-", *words] if unlocked else words
    done = subprocess.run(
        [entry["command"], *entry["args"], *inner],
        env={**environment, "XDG_RUNTIME_DIR": str(run), "XDG_DATA_HOME": str(data)},
        capture_output=True,
        text=True,
        timeout=50,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ROUND = """
import sys
from dragoman.auth.stores.keyring import KeyringStore, is_usable
assert is_usable()
store = KeyringStore()
print(store.description)
small, large = b"a small secret", bytes(range(256)) * 80
for secret in (small, large, small, large):
    store.put("s|1|", secret)
    assert store.get("s|1|") == secret
store.put("t|1|", small)
import keyring
parts = [each for each in keyring.get_keyring().get_preferred_collection().get_all_items()]
print(len(parts))
store.delete("s|1|")
assert store.get("s|1|") is None
assert store.get("t|1|") == small
print(len([each for each in keyring.get_keyring().get_preferred_collection().get_all_items()]))
"""


@pytest.mark.requirement("AUT-2")
@pytest.mark.needs("keychain")
def test_small_and_large_secrets_are_stored_and_deleted_completely(part: Part, home: Path) -> None:
    lines = in_keychain(part, home, sys.executable, "-c", ROUND).splitlines()
    # 20 480 bytes are 27 308 characters in base64: 28 parts and the list of them; beside it the other secret.
    assert lines == ["in SecretService Keyring", "30", "1"]


VAULT = """
from dragoman.auth.stores.base import Vault
vault = Vault()
vault.put("s|1|", b"a secret")
print(vault.description_of("s|1|"))
"""


@pytest.mark.requirement("AUT-2")
@pytest.mark.needs("keychain")
def test_a_working_keychain_is_preferred_and_a_failing_one_is_replaced_by_files(
    part: Part, home: Path
) -> None:
    assert in_keychain(part, home, sys.executable, "-c", VAULT) == "in SecretService Keyring\n"
    said = in_keychain(part, home, sys.executable, "-c", VAULT, unlocked=False)
    assert said == f"in files that only you can read below {home}/.dragoman/auth\n"


@pytest.mark.requirement("AUT-2", "AUT-11")
@pytest.mark.needs("keychain")
def test_login_puts_the_tokens_into_the_keychain(
    part: Part, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "browser"
    script = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=30).read()"
    program.write_text(f"#!{sys.executable}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(program))
    with SignInSite() as site:
        (home / ".dragoman").mkdir()
        (home / ".dragoman" / "settings.json").write_text(json.dumps({"mcpServers": {"s": site.entry}}))
        said = in_keychain(part, home, str(DRAGOMAN), "mcp", "login", "s")
        assert " ".join(said.split()) == (
            f"Signed in to s at {site.origin}. The tokens are in SecretService Keyring. Connected, 1 tool."
        )
        assert list((home / ".dragoman" / "auth").glob("*.secret")) == []
        # A new session: the keychain was closed and is opened again.
        said = in_keychain(part, home, str(DRAGOMAN), "call", "mcp__s__look", "--yes")
        assert said.strip() == "seen"
        said = in_keychain(part, home, str(DRAGOMAN), "mcp", "logout", "s")
        assert said == "Signed out of s.\n"
        assert site.tokens == set()
