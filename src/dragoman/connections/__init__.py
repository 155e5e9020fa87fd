"""Owns live links to servers: their state, the task that owns each, the handshake, and what servers ask."""
