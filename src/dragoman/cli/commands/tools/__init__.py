"""`dragoman tools`: one module per command."""
