"""A package, so that `tests.servers` and other test modules can be imported by their full name."""
