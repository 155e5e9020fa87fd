"""The names things go by, as types of their own.

I own: the distinction between what a server calls a tool (`WireToolName`) and what a model
calls it (`QualifiedName`), so that a mix-up is a type error. How one becomes the other is
decided in `catalog/naming.py`.
"""

from __future__ import annotations

from typing import NewType

ServerName = NewType("ServerName", str)
"""The key of an entry in configuration. Unique in a host; chosen by the person, not the server."""

WireToolName = NewType("WireToolName", str)
"""A tool's name exactly as its server spells it."""

QualifiedName = NewType("QualifiedName", str)
"""A tool's name as models and people use it: `mcp__<server>__<tool>`."""
