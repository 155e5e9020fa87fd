"""Calls through a local gateway (`dragoman serve --local`) whose servers are connected already."""
