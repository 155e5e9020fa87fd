"""Owns whether a call may be made."""
