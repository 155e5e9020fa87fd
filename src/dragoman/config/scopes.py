"""The scopes of configuration: their order, and the files of each.

Accesses no file, except to find which ones exist between the working directory and the home directory.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, get_args

from msgspec import Struct

from dragoman import paths
from dragoman.errors import ConfigError

Scope = Literal["connectors", "plugin", "user", "project", "local", "dynamic", "enterprise"]

SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
"""From the lowest to the highest: a higher scope replaces a server of the same name."""

IN_PROJECT: Final[frozenset[Scope]] = frozenset({"project", "local"})
"""Scopes whose files are in the project's folder, and so may come from an unknown author."""

OUTSIDE_PROJECTS: Final[frozenset[Scope]] = frozenset({"plugin", "user", "enterprise"})
"""Scopes whose servers are the same in every project, and start in their own folders."""

MAY_TRUST: Final[frozenset[Scope]] = frozenset({"user", "dynamic", "enterprise"})
"""Scopes in which an entry can set `trusted`: the person, the program and the administrator."""

CLAIMS: Final[tuple[tuple[str, object, object], ...]] = (
    ("trusted", True, False),
    ("sampling", "allow", "ask"),
    ("roots", True, None),
)
"""Fields with values that are valid only in the scopes of `MAY_TRUST`, and the value that is used in other
scopes."""

USER_FILE: Final = "settings.json"
PROJECT_FILE: Final = ".mcp.json"
LOCAL_FILE: Final = ".dragoman/settings.local.json"
APPROVALS_FILE: Final = "approvals.json"


def working_folder() -> str:
    """The folder that this program works in, or `ConfigError`: it may have been deleted meanwhile."""
    try:
        return os.getcwd()
    except OSError as error:
        raise ConfigError(
            f"the working directory cannot be used: {error.strerror or error}",
            hint="It was deleted or cannot be read. Change to another folder.",
        ) from None


class Sources(Struct, frozen=True, kw_only=True):
    """The sources of configuration. A value, so that the same sources can be read again later."""

    config_dir: Path
    managed_dir: Path
    cwd: Path
    home: Path | None = None
    given: Mapping[str, object] = {}
    """Servers from the command line or from code: scope `dynamic`."""
    given_source: str = "code"
    given_in: Path | Literal["own"] | None = None
    """Where these start: in this project's folder, each in its own folder, or in the person's working
    directory."""
    only_given: bool = False
    """Whether the person's files are left out. The administrator's file always applies."""
    overrides: Mapping[str, int] = {}
    """Settings from code."""
    ignore_broken_settings: bool = False
    """Whether files of the person and the project that cannot be read are left out, although they can forbid
    something. The administrator's never are."""

    def __repr__(self) -> str:
        return f"<Sources seen from {self.cwd}>"

    @staticmethod
    def here(
        cwd: Path | None = None,
        *,
        given: Mapping[str, object] | None = None,
        given_source: str = "code",
        only_given: bool = False,
        overrides: Mapping[str, int] | None = None,
        ignore_broken_settings: bool = False,
    ) -> Sources:
        """The usual sources for this person, for a working directory."""
        return Sources(
            config_dir=paths.config_dir(),
            managed_dir=paths.managed_dir(),
            cwd=Path(os.path.realpath(cwd or working_folder())),
            home=_home(),
            given=given or {},
            given_source=given_source,
            only_given=only_given,
            overrides=overrides or {},
            ignore_broken_settings=ignore_broken_settings,
        )

    @property
    def user_file(self) -> Path:
        return self.config_dir / USER_FILE

    @property
    def managed_file(self) -> Path:
        return self.managed_dir / paths.MANAGED_FILE

    @property
    def approvals_file(self) -> Path:
        return self.config_dir / APPROVALS_FILE

    @property
    def plugins_dir(self) -> Path:
        return self.config_dir / "plugins"

    @property
    def connectors_cache(self) -> Path:
        return self.config_dir / "state" / "connectors.json"

    def plugin_files(self) -> tuple[Path, ...]:
        try:
            folders = sorted(self.plugins_dir.iterdir())
        except OSError:
            return ()
        return tuple(folder / PROJECT_FILE for folder in folders if os.path.isdir(folder))

    def folders(self) -> Iterator[Path]:
        """The folders from the working directory up to the home directory, or to the root outside of it."""
        for folder in (self.cwd, *self.cwd.parents):
            yield folder
            if folder == self.home:
                return

    @property
    def project_root(self) -> Path:
        """The folder that project files are written to: the nearest that looks like a project."""
        for folder in self.folders():
            if folder == self.home and folder != self.cwd:
                break
            marks = (folder / PROJECT_FILE, folder / ".git", self.local_file_in(folder).parent)
            if any(os.path.exists(mark) for mark in marks if mark != self.config_dir):
                return folder
        return self.cwd

    def project_files(self) -> tuple[Path, ...]:
        """Nearest first."""
        return tuple(folder / PROJECT_FILE for folder in self.folders())

    def local_files(self) -> tuple[Path, ...]:
        """Nearest first."""
        return tuple(self.local_file_in(folder) for folder in self.folders())

    @staticmethod
    def local_file_in(folder: Path) -> Path:
        return folder / LOCAL_FILE

    @staticmethod
    def project_root_of(file: Path) -> Path:
        """The folder of the project that a project or local file belongs to, with links resolved.

        The project's servers start in it, and approvals are stored under it: it is the same value for both.
        """
        root = file.parent if file.name == PROJECT_FILE else file.parent.parent
        return Path(os.path.realpath(root))

    @staticmethod
    def target_outside_project(file: Path) -> Path | None:
        """Where a project or local file leads, if that is not inside its project's folder."""
        target = Path(os.path.realpath(file))
        return None if target.is_relative_to(Sources.project_root_of(file)) else target

    @staticmethod
    def in_use(files: Iterable[Path]) -> tuple[Path, ...]:
        """The project or local files that are not links to outside their project."""
        return tuple(file for file in files if Sources.target_outside_project(file) is None)

    def file_of(self, scope: str) -> Path:
        """The file that a person's entries of a scope are written to."""
        match scope:
            case "user":
                return self.user_file
            case "project":
                return self.project_root / PROJECT_FILE
            case "local":
                return self.local_file_in(self.project_root)
            case _:
                raise ValueError(f"nothing is written to scope {scope}")

    def watched_files(self) -> tuple[Path, ...]:
        """Every file whose changes have an effect."""
        forbidding = (self.managed_file, self.user_file, *self.local_files())
        if self.only_given:
            return forbidding  # their prohibitions apply to servers from other sources too
        return (
            *forbidding,
            self.approvals_file,
            self.connectors_cache,
            *self.plugin_files(),
            *self.project_files(),
        )


def _home() -> Path | None:
    try:
        return Path(os.path.realpath(Path.home()))
    except RuntimeError:
        return None
