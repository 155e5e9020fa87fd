"""Tool calls and other requests: finds the tool, validates the arguments, checks permission, sends the
request, and prepares the result.
"""
