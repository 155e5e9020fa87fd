"""Import from and export to the configuration files of other hosts."""
