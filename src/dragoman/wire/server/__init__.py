"""The server side: what is offered (`service.py`), the rules of the eras (`incoming.py`, `legacy.py`,
`modern.py`, all pure), and one client's connection (`connection.py`), which calls the handlers.

A new method is a handler in a `Service`; a program that serves others, such as a gateway, makes one.
"""
