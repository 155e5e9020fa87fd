"""Servers to measure against; each file is started as a program of its own."""
