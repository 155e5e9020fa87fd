"""The protocol without I/O: encoding and decoding of messages, ids and replies, the two eras, and the choice
between them.
"""
