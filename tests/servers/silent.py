"""Reads everything and never says a word."""

from _kit import messages, stay

for _ in messages():
    pass
stay()
