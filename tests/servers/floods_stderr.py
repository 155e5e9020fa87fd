"""Writes much to stderr before it answers: `flood(megabytes, kind)`; kind is text, binary or one_line."""

from _kit import arguments_of, send, serve, text_of, write

KINDS = {"text": b"a line of the log\n", "binary": bytes(range(256)), "one_line": b"\xe2\x82\xac"}


def flood(call):
    asked = arguments_of(call)
    pattern = KINDS[asked["kind"]]
    block = pattern * (1_000_000 // len(pattern))
    for _ in range(asked["megabytes"]):
        write(block, fd=2)
    write(b"\nand that was all\n", fd=2)
    send(text_of(call, "done"))


serve(flood, "flood")
