"""Where secrets are stored: the system's keychain, files, or memory."""
