"""Owns the commands that manage servers, one file each."""
