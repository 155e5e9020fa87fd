"""Live connections to servers: states, owner tasks, handshakes, and requests from servers."""
