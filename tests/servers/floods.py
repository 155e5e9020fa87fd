"""Writes the same text without end after `flood(text)` is called."""

from _kit import arguments_of, serve, write

PIECE_BYTES = 64 * 1024


def flood(call):
    text = arguments_of(call)["text"].encode()
    piece = text * (PIECE_BYTES // len(text))
    while True:
        write(piece)


serve(flood, "flood")
