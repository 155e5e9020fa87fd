"""A package, so that `tests.servers` and its neighbours can be imported by their full name."""
