"""Owns how bytes reach a server and come back: one file a transport, and what processes need."""
