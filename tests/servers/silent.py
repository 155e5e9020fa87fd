"""Reads everything and never answers."""

from _kit import messages, stay

for _ in messages():
    pass
stay()
