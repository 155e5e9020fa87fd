"""Roots: the folders a person works in, as they are sent to servers.

The working directory and further folders that the program names. They are information and no permission: what
a server can read does not depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Raw

from dragoman.config.model import ServerConfig
from dragoman.connections.server_requests import RequestContext, RequestHandler
from dragoman.errors import ConfigError
from dragoman.interaction import Interaction, ListsRoots


class Roots:
    """The roots of one host."""

    def __init__(
        self, cwd: Path, extra: Sequence[Path | str] = (), interaction: Interaction | None = None
    ) -> None:
        self._cwd = cwd
        self._interaction = interaction
        self._folders = _checked(cwd, extra)
        self.named = tuple(extra)
        """The folders that the program or the person named."""

    @property
    def folders(self) -> tuple[Path, ...]:
        return self._folders

    def set(self, extra: Sequence[Path | str]) -> bool:
        """Other folders besides the working directory from now on; whether anything changed."""
        before, self._folders = self._folders, _checked(self._cwd, extra)
        self.named = tuple(extra)
        return before != self._folders

    def _is_offered(self, config: ServerConfig) -> bool:
        """Where the entry has no `roots`: to servers on this machine, if folders were named. A server may
        take roots in place of the folders of its own command line, as the filesystem server does; and names
        of folders reveal something of the person."""
        return bool(self.named) and config.transport.place != "remote"

    async def _answer(self, params: Raw, context: RequestContext) -> Mapping[str, Any]:
        if isinstance(self._interaction, ListsRoots):
            found = await self._interaction.list_roots(context.calls)
            if found is not None:
                return {"roots": found}
        return {"roots": [{"uri": each.as_uri(), "name": each.name or str(each)} for each in self._folders]}

    def handlers(self, config: ServerConfig) -> tuple[RequestHandler, ...]:
        """The handler of `roots/list` for a server with this entry; none if it is not offered roots."""
        if not (self._is_offered(config) if config.roots is None else config.roots):
            return ()
        capabilities = {"roots": {"listChanged": True}}
        return (RequestHandler("roots/list", capabilities, self._answer, needs_call=False),)


def _checked(cwd: Path, extra: Sequence[Path | str]) -> tuple[Path, ...]:
    if isinstance(extra, str):
        raise ConfigError("roots: must be a list of folders", hint='For example ["/srv/data"].')
    folders = [cwd, *((cwd / Path(each).expanduser()) for each in extra)]
    for folder in folders[1:]:
        if not folder.is_dir():
            raise ConfigError(
                f"there is no folder {str(folder)!r} to use as a root",
                hint="Create it, or name another folder.",
            )
    return tuple(dict.fromkeys(folder.resolve() for folder in folders))
