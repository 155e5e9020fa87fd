"""Authentication of the host to servers: where authentication headers come from, and how they are renewed."""
