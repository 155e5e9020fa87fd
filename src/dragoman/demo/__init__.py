"""Owns the built-in demo server: tools that show what MCP can do, with no network and no key."""
