"""The servers of a host: each with its connection and its lists, and the registry of all of them."""
