"""The built-in demo server: tools that show what MCP can do, without network and key."""
