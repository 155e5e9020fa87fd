"""Patterns with `*`, compared with texts in linear time. Pure: no regular expression is made of a pattern."""

Pieces = tuple[str, ...]
"""The literal parts of a pattern, with a `*` between each two."""


def fits(pieces: Pieces, text: str) -> bool:
    """Whether the text consists of the pieces, in order, with any characters between them."""
    if len(pieces) == 1:
        return text == pieces[0]
    first, *middle, last = pieces
    at, end = len(first), len(text) - len(last)
    if at > end or not text.startswith(first) or not text.endswith(last):
        return False
    for piece in middle:
        # The leftmost match is always as good as any later one.
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
