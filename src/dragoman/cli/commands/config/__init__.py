"""Owns the commands that explain configuration, one file each."""
