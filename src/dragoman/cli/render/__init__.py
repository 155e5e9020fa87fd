"""Output: text for people, JSON for programs."""
