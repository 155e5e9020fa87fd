"""Owns what can be called now: tools of all servers as one clean, stable pool."""
