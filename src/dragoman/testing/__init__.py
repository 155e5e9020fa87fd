"""Public helpers for tests: an in-memory server, a scripted user, a clock that a test advances."""

from dragoman.testing.clock import FakeClock
from dragoman.testing.server import InMemoryServer, ToolContext
from dragoman.testing.user import ScriptedUser

__all__ = ["FakeClock", "InMemoryServer", "ScriptedUser", "ToolContext"]
