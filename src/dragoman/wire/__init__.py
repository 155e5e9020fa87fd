"""The protocol without I/O: encoding and decoding of messages, ids and replies; the client side (`client/`)
and the server side (`server/`), each in both eras.
"""
