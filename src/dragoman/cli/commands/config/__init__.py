"""`dragoman config`: one module per command."""
