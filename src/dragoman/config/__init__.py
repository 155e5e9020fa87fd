"""Configuration: entries of servers, scopes, merging, policy, approval."""
