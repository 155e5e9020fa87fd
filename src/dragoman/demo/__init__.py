"""The built-in demo server: tools that show what MCP can do. Needs neither network nor API key."""
