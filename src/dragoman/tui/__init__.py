"""The terminal application and its screens, with Textual. Needs the extra `agent`."""
