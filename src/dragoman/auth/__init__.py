"""Owns who asks: where the headers that prove it come from, and how they are made anew."""
