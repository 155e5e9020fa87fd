"""Does everything right: the bystander."""

from _kit import serve

serve()
