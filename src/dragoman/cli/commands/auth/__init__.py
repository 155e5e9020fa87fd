"""`dragoman auth`: one module per command."""
