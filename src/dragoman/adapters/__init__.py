"""Tools in the formats of other libraries: a small module for each, loaded when it is imported."""
