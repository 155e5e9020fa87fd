"""Owns what runs before and after calls."""
