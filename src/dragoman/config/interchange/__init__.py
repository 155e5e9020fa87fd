"""Owns how servers come from other hosts' files and go to them: formats, their variables, their places."""
