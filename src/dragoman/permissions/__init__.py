"""Decides whether a call may be made."""
