"""Benchmarks of Dragoman against the practical limit and against other MCP clients; see README.md."""
