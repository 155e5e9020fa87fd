"""Owns `dragoman tools`: one module per sub-command."""
