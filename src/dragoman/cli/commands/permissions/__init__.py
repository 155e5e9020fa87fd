"""`dragoman permissions`: one module per command."""
