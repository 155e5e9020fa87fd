"""The commands of `dragoman tasks`."""
