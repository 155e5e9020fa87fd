"""T246: an import writes no client secret into a configuration file, and reports which secrets are
shared."""

import json
from pathlib import Path

import pytest

from dragoman.auth.references import REFERENCE
from tests.e2e.forked import run
from tests.torture.projects import servers, write

pytestmark = pytest.mark.requirement("CFG-12")
SECRET = "canary-secret-1234567"
PLACES = {"user": ".dragoman/settings.json", "project": "work/.mcp.json"}


def imported(home: Path, scope: str, **fields: object) -> tuple[str, dict[str, object]]:
    entry = {"type": "http", "url": "https://a.example/", **fields}
    file = write(home / "work" / "theirs.json", servers(box=entry))
    done = run("mcp", "import", "claude-code", str(file), "-s", scope)
    assert done.returncode == 0, done.stderr
    document = json.loads((home / PLACES[scope]).read_text())
    return done.stdout + done.stderr, document["mcpServers"]["box"]


@pytest.mark.parametrize("scope", PLACES)
@pytest.mark.parametrize("field", ["clientSecret", "privateKey", "workloadToken"])
def test_t246_a_client_secret_is_stored_and_referenced(
    home: Path, monkeypatch: pytest.MonkeyPatch, scope: str, field: str
):
    monkeypatch.setenv("DRAGOMAN_SECRET_STORE", "file")
    _, entry = imported(home, scope, oauth={"clientId": "me", field: SECRET})
    oauth = entry["oauth"]
    assert isinstance(oauth, dict)
    assert oauth[field].startswith(REFERENCE)


def test_t246_a_secret_that_a_project_shares_is_reported(home: Path):
    said, _ = imported(home, "project", headers={"Authorization": f"Bearer {SECRET}"})
    assert "! box: Authorization will be shared with everyone who has the project" in said


def test_t246_a_secret_in_the_persons_own_file_is_not_reported(home: Path):
    said, _ = imported(home, "user", headers={"Authorization": f"Bearer {SECRET}"})
    assert "shared" not in said
