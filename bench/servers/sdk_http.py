"""A server on the official SDK behind HTTP; the first line it prints is its port."""

import os
import socket
import sys

import uvicorn
from mcp.server import Server
from sdk_server import call_tool, list_tools

if "--cpu" in sys.argv:
    os.sched_setaffinity(0, {int(sys.argv[sys.argv.index("--cpu") + 1])})
server = Server("sdk", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
application = server.streamable_http_app(json_response="--sse" not in sys.argv, stateless_http=True)
# Made by hand: asyncio switches Nagle's algorithm off only on sockets that are known to be TCP's.
listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
listener.bind(("127.0.0.1", 0))
listener.listen(512)
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(application, log_level="critical")).run(sockets=[listener])
