"""The permissions that a person granted for this session.

A grant is bound to its caller and to a tool of a server with its definition, or to one exact command of the
shell in one folder. After a change of the tool's definition the person is asked again. An answer about any
other built-in tool applies only to the arguments of that call (it may read from any server) and is not
stored.
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
    """Whether an approval could apply to more than this call."""
    if call.command is None:
        return bool(call.server)
    return bool(call.command.strip()) and len(call.command) <= COMMAND_LIMIT


class SessionGrants:
    def __init__(self) -> None:
        self._digests: dict[GrantKey, str] = {}
        """Grant → the digest of the tool's definition when it was granted."""
        self.on_change: Callable[[GrantKey, str | None], None] = lambda key, digest: None
        """Called for each grant that is given and, without a digest, for each that has ended."""

    def replace_all(self, grants: Mapping[GrantKey, str]) -> None:
        """Takes over the grants that replicas of a gateway share."""
        self._digests = dict(grants)

    def state(self, call: Call) -> Granted:
        if not self._digests:  # executed for every call; most sessions have no grants
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
        """Ends a grant, because the person refused the call or allowed it only once."""
        self._end(_key(call))

    def forget(self, server: str) -> None:
        """Ends all grants for a server whose entry was changed or removed."""
        for key in [key for key in self._digests if key[0] == server]:
            self._end(key)

    def _end(self, key: GrantKey) -> None:
        if self._digests.pop(key, None) is not None:
            self.on_change(key, None)


def _key(call: Call) -> GrantKey:
    command = f"{call.folder}\0{call.command}" if call.folder else call.command
    return call.server, call.wire_name or call.tool, command, call.caller.id
