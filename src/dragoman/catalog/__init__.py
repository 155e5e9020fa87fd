"""The tools, resources and prompts of all servers, under stable names."""
