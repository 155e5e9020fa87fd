"""Transports, one module each, and the processes of local servers."""
