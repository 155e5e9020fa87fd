"""Converts the input schemas of tools to schemas that every model API accepts."""

from dragoman.catalog.schemas.fitness import unsafe_names
from dragoman.catalog.schemas.rewriting import for_models

__all__ = ["for_models", "unsafe_names"]
