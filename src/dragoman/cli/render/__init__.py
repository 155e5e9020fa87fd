"""Owns how values look: text for people, JSON for programs."""
