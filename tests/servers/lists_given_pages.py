"""Lists its tools as its argument says: a JSON list of pages.

A page is {"tools": [definitions], "nextCursor": …}, or {"error": code}. For a cursor it returns the page
after the one that contained the cursor. Calls of any tool return the tool's name.
"""

import json
import sys

from _kit import error_of, introduce, is_call, listed, messages, send, text_of

pages = json.loads(sys.argv[1])
follows = {page["nextCursor"]: n + 1 for n, page in reversed(list(enumerate(pages))) if "nextCursor" in page}

for message in messages():
    if message.get("method") == "tools/list":
        cursor = (message.get("params") or {}).get("cursor")
        page = pages[0 if cursor is None else follows[cursor]]
        if "error" in page:
            send(error_of(message, page["error"], "no such page"))
        else:
            send(listed(message, **page))
    elif is_call(message):
        send(text_of(message, message["params"]["name"]))
    else:
        introduce(message)
