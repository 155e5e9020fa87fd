"""Owns the commands, one file each."""
