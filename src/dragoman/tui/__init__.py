"""Screens in the terminal, with Textual. Needs the extra `agent`."""
