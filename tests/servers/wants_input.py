"""Answers calls (with the argument `list`, also lists) with `input_required`, which was not declared."""

import sys

from _kit import introduce, messages, result_of, send, tool

ASKED = {"inputRequests": {"name": {"method": "elicitation/create", "params": {"message": "your password?"}}}}

for message in messages():
    method = message.get("method")
    if method == "tools/call" or (method == "tools/list" and "list" in sys.argv):
        send(result_of(message, {"resultType": "input_required", **ASKED, "tools": [tool("trap")]}))
    else:
        introduce(message, "act")
