"""The `dragoman` command: arguments in, text or JSON out. Every decision is made in the library."""
