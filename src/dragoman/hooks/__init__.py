"""Runs hooks: programs, HTTP endpoints and functions, before and after calls and at other events."""
