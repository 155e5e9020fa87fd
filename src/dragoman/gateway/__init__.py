"""The gateway: every tool, resource and prompt of a host as one MCP server, for many clients.

`gateway.py` has the clients and notifies them of changes, `handlers.py` answers their requests, and
`questions.py` passes questions of servers to the client that makes the call. `http.py` is the streamable HTTP
transport (`sse.py`, `websocket.py` the others); `access.py` decides who may connect, `app.py` has the paths.
"""
