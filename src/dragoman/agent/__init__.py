"""The agent: a conversation in which a model uses the tools of a host. It needs the extra `agent`."""
