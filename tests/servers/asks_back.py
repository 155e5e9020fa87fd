"""Asks the host a question in the middle of a call: `ask(method, params)`; returns what it was answered.

With `patient` false it does not wait for an answer, as where none may come.
"""

import json

from _kit import arguments_of, introduce, is_call, messages, send, text_of

asking = None
for message in messages():
    if introduce(message, "ask"):
        continue
    if is_call(message, "ask"):
        asked = arguments_of(message)
        question = {"method": asked["method"], "params": asked.get("params", {})}
        send({"jsonrpc": "2.0", "id": "question", **question})
        if asked.get("patient", True):
            asking = message
        else:
            send(text_of(message, "asked"))
    elif message.get("id") == "question" and asking:
        send(text_of(asking, json.dumps(message)))
