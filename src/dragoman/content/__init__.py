"""Owns what becomes of a result on its way to a model: typed blocks now, budgets and files later."""
