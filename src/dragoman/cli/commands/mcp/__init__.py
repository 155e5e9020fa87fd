"""`dragoman mcp`: one module per command."""
