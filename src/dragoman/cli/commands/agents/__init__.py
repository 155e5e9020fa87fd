"""The commands of `dragoman agents`."""
