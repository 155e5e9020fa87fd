"""Owns the `dragoman` command: arguments in, text or JSON out. Decides nothing the library could."""
