"""A correct server without faults. Tests use it as the server that others must not affect."""

from _kit import serve

serve()
