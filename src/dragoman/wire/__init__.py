"""Owns the protocol without I/O: bytes ↔ messages, ids and replies, the two eras, and which one to speak."""
