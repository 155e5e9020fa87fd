"""Built-in tools of the agent: files and the shell of the folder that the person works in."""
