"""Always has one more page of tools; every page has as many tools as the first argument says.

Its second argument: the real number of pages; 0 for no end.
"""

import sys

from _kit import introduce, listed, messages, send, tool

size, pages = int(sys.argv[1]), int(sys.argv[2])

for message in messages():
    if message.get("method") == "tools/list":
        page = int((message.get("params") or {}).get("cursor") or 0)
        tools = [tool(f"tool_{page * size + n}") for n in range(size)]
        last = pages and page + 1 >= pages
        send(listed(message, *tools, **({} if last else {"nextCursor": str(page + 1)})))
    else:
        introduce(message)
