"""Owns what becomes of a result on its way to a model: typed blocks, budgets, files and the way into them."""
