"""Owns the shapes in which agents want tools: a thin module for each library, loaded when it is asked for."""
