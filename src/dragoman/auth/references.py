"""How configuration files refer to a secret in the secret store."""

from __future__ import annotations

from typing import Final

REFERENCE: Final = "secret-store:"


def is_reference(text: str | None) -> bool:
    return text is not None and text.startswith(REFERENCE)
