"""Owns what people and companies say about servers: entries, scopes, merging, policy, approval."""
