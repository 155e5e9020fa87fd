"""Owns the story of one call: found, validated, allowed, delivered, brought back."""
