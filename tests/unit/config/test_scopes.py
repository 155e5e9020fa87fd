"""Where configuration is looked for."""

from pathlib import Path

import pytest

from dragoman.config.load import load
from dragoman.config.scopes import SCOPES, Sources
from tests.integration.desk import Desk


@pytest.fixture
def desk(home: Path) -> Desk:
    return Desk(home)


def sources(cwd: Path, home: Path | None) -> Sources:
    return Sources(config_dir=Path("/c"), managed_dir=Path("/m"), cwd=cwd, home=home)


@pytest.mark.requirement("CFG-1")
def test_the_scopes_from_the_lowest_to_the_highest():
    assert SCOPES == ("connectors", "plugin", "user", "project", "local", "dynamic", "enterprise")


@pytest.mark.requirement("CFG-2")
@pytest.mark.parametrize(
    ("cwd", "home", "folders"),
    [
        ("/home/me/a/b", "/home/me", ["/home/me/a/b", "/home/me/a", "/home/me"]),
        ("/home/me", "/home/me", ["/home/me"]),
        ("/srv/x", "/home/me", ["/srv/x", "/srv", "/"]),
        ("/home/me-too/x", "/home/me", ["/home/me-too/x", "/home/me-too", "/home", "/"]),
        ("/", "/home/me", ["/"]),
        ("/srv", None, ["/srv", "/"]),
    ],
)
def test_parent_folders_are_searched_up_to_the_home_or_the_root(
    cwd: str, home: str | None, folders: list[str]
):
    looked = sources(Path(cwd), home and Path(home))  # type: ignore[arg-type]
    assert [str(folder) for folder in looked.folders()] == folders
    assert [str(file) for file in looked.project_files()] == [f"{f.rstrip('/')}/.mcp.json" for f in folders]
    assert [str(file.parent.parent) for file in looked.local_files()] == folders


@pytest.mark.requirement("CFG-2")
def test_the_default_paths(home: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DRAGOMAN_CONFIG_DIR")
    monkeypatch.delenv("DRAGOMAN_MANAGED_DIR")
    here = Sources.here()
    assert here.user_file == home / ".dragoman" / "settings.json"
    assert here.approvals_file == home / ".dragoman" / "approvals.json"
    assert here.plugins_dir == home / ".dragoman" / "plugins"
    assert here.managed_file.name == "managed-mcp.json"
    assert here.managed_file.is_absolute()
    assert not here.managed_file.is_relative_to(home)
    assert here.project_files()[0] == home / "work" / ".mcp.json"
    assert here.local_files()[0] == home / "work" / ".dragoman" / "settings.local.json"


@pytest.mark.requirement("CFG-2")
def test_two_variables_move_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("DRAGOMAN_MANAGED_DIR", str(tmp_path / "theirs"))
    here = Sources.here()
    own = (here.user_file, here.approvals_file, here.plugins_dir, here.connectors_cache)
    assert all(path.is_relative_to(tmp_path / "mine") for path in own)
    assert here.managed_file == tmp_path / "theirs" / "managed-mcp.json"


@pytest.mark.requirement("CFG-2")
def test_a_home_that_is_a_symlink_still_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The system tells the working directory with links followed; HOME is told as it was set."""
    real = tmp_path / "disk" / "me"
    (real / "work").mkdir(parents=True)
    (tmp_path / "home").symlink_to("disk/me")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(real / "work")
    (tmp_path / "disk" / ".mcp.json").write_text('{"mcpServers": {"beyond": {"command": "x"}}}')
    (real / ".mcp.json").write_text('{"mcpServers": {"within": {"command": "y"}}}')
    assert list(load(Sources.here()).servers) == ["within"]


def test_a_person_without_a_home_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def nobody() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", staticmethod(nobody))
    monkeypatch.chdir(tmp_path)
    here = Sources.here()
    assert here.home is None
    assert here.project_files()[-1] == Path("/.mcp.json")


# --- the folder of the project ---


@pytest.mark.parametrize("mark", [".git/", ".mcp.json", ".dragoman/"])
def test_the_project_is_the_nearest_folder_with_a_project_file(home: Path, mark: str):
    inner = home / "work" / "a" / "b"
    inner.mkdir(parents=True)
    path = home / "work" / "a" / mark.rstrip("/")
    path.mkdir() if mark.endswith("/") else path.write_text("{}")
    assert Sources.here(inner).project_root == home / "work" / "a"
    assert Sources.here(home / "work").project_root == home / "work"


def test_the_home_is_not_the_project_of_folders_below_it(home: Path):
    (home / ".git").mkdir()
    (home / ".dragoman").mkdir()
    assert Sources.here().project_root == home / "work"
    assert Sources.here(home).project_root == home


def test_the_persons_settings_folder_does_not_mark_a_project(home: Path, monkeypatch: pytest.MonkeyPatch):
    moved = home / "work" / ".dragoman"
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(moved))
    moved.mkdir()
    (home / "work" / "inner").mkdir()
    assert Sources.here(home / "work" / "inner").project_root == home / "work" / "inner"


def test_the_files_that_are_written_to(home: Path):
    (home / "work" / ".git").mkdir()
    (home / "work" / "inner").mkdir()
    here = Sources.here(home / "work" / "inner")
    assert here.file_of("user") == home / ".dragoman" / "settings.json"
    assert here.file_of("project") == home / "work" / ".mcp.json"
    assert here.file_of("local") == home / "work" / ".dragoman" / "settings.local.json"
    for file in (here.file_of("project"), here.file_of("local")):
        assert here.project_root_of(file) == home / "work"


@pytest.mark.parametrize("scope", ["enterprise", "dynamic", "plugin", "connectors", ""])
def test_nothing_is_written_to_the_other_scopes(scope: str):
    with pytest.raises(ValueError):
        Sources.here().file_of(scope)


# --- plugins, and what is watched ---


@pytest.mark.requirement("CFG-2")
def test_plugins_are_read_in_order_of_name(desk: Desk):
    for name in ("zebra", "ant"):
        desk.write(desk.plugin_file(name), {})
    (desk.home / ".dragoman" / "plugins" / "README").write_text("not a folder")
    (desk.home / ".dragoman" / "plugins" / "gone").symlink_to("nowhere")
    assert Sources.here().plugin_files() == (desk.plugin_file("ant"), desk.plugin_file("zebra"))


def test_without_a_plugins_folder_there_are_no_plugins(home: Path):
    assert Sources.here().plugin_files() == ()


def test_every_file_with_an_effect_is_watched(desk: Desk):
    desk.write(desk.plugin_file("tools"), {})
    watched = set(Sources.here().watched_files())
    assert watched >= {
        desk.user_file,
        desk.approvals_file,
        desk.project_file,
        desk.local_file,
        desk.managed_file,
        desk.plugin_file("tools"),
        desk.home / ".mcp.json",
    }


def test_with_given_servers_only_files_that_can_deny_are_watched(desk: Desk):
    sources = Sources.here(only_given=True)
    assert sources.watched_files() == (desk.managed_file, desk.user_file, *sources.local_files())
