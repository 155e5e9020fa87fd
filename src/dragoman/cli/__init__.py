"""The `dragoman` command: reads arguments, prints text or JSON. Every decision is made in the library."""
