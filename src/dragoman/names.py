"""Types for names.

Distinguishes the name that a server gives a tool (`WireToolName`) from the name that a model uses
(`QualifiedName`), so that confusing them is a type error. `catalog/naming.py` converts one to the other.
"""

from __future__ import annotations

from typing import NewType

ServerName = NewType("ServerName", str)
"""The key of an entry in configuration. Unique in a host; chosen by the person, not the server."""

WireToolName = NewType("WireToolName", str)
"""A tool's name exactly as its server spells it."""

QualifiedName = NewType("QualifiedName", str)
"""A tool's name as models and people use it: `mcp__<server>__<tool>`."""
