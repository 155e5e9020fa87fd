"""Converts results for models: typed blocks, size limits, files, and reading of saved results."""
