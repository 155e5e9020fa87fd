"""Compares the rules `Bash(…)` with commands of the shell.

Commands are parsed by tree-sitter, which the extra `agent` installs. Without it a command is unclear:
nothing but an exact rule or `Bash(*)` allows it, and every deny or ask for the shell applies to it.
"""
