"""`dragoman` without a command: a conversation with a model, or one answer (`-p`)."""
