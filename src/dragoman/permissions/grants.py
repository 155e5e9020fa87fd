"""What a person allowed for this session.

A grant is bound to its caller and to a tool of a server with its definition, or to one exact command of the
shell in one folder. A tool whose definition changed is asked about again. An answer about any other built-in
tool applies to its arguments only (it may read from any server) and is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal

from dragoman.permissions.rules import Call

Granted = Literal["no", "yes", "lapsed"]
COMMAND_LIMIT: Final = 4000
"""The longest command for which a grant is kept: a person does not read a longer one to its end."""
GrantKey = tuple[str, str, str | None, str]
"""Server, tool, command (with its folder, if that is not the person's), caller."""


def is_rememberable(call: Call) -> bool:
    """Whether a yes to it could hold for anything but this call."""
    if call.command is None:
        return bool(call.server)
    return bool(call.command.strip()) and len(call.command) <= COMMAND_LIMIT


class SessionGrants:
    def __init__(self) -> None:
        self._digests: dict[GrantKey, str] = {}
        """What was allowed → the digest of its definition then."""
        self.on_change: Callable[[GrantKey, str | None], None] = lambda key, digest: None
        """Called with each grant that is given, or, without a digest, has ended."""

    def replace_all(self, grants: Mapping[GrantKey, str]) -> None:
        """Takes over the grants that replicas of a gateway share."""
        self._digests = dict(grants)

    def state(self, call: Call) -> Granted:
        if not self._digests:  # on every call's way; most sessions hold none
            return "no"
        digest = self._digests.get(_key(call))
        if digest is None:
            return "no"
        return "yes" if digest == call.digest else "lapsed"

    def remember(self, call: Call) -> None:
        if is_rememberable(call):
            self._digests[_key(call)] = call.digest
            self.on_change(_key(call), call.digest)

    def revoke(self, call: Call) -> None:
        """The person said no, or yes only once, where there was a yes for the session."""
        self._end(_key(call))

    def forget(self, server: str) -> None:
        """A server's entry was changed or removed: all grants for it end."""
        for key in [key for key in self._digests if key[0] == server]:
            self._end(key)

    def _end(self, key: GrantKey) -> None:
        if self._digests.pop(key, None) is not None:
            self.on_change(key, None)


def _key(call: Call) -> GrantKey:
    command = f"{call.folder}\0{call.command}" if call.folder else call.command
    return call.server, call.wire_name or call.tool, command, call.caller.id
