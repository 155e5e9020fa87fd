"""Has one tool, `buy`, which requires that a page is opened first: each call is answered with -32042.

Its first argument is a JSON list of {"url", "message"}, the second the number of calls answered in this way.
"""

import json
import sys

from _kit import error_of, introduce, is_call, listed, messages, send, text_of, tool

pages = [{"mode": "url", "elicitationId": "1", **page} for page in json.loads(sys.argv[1])]
left = int(sys.argv[2])
for message in messages():
    if message.get("method") == "tools/list":
        send(listed(message, tool("buy")))
    elif is_call(message) and left:
        left -= 1
        send(error_of(message, -32042, "visit a page first", {"elicitations": pages}))
    elif is_call(message):
        send(text_of(message, "bought"))
    else:
        introduce(message)
