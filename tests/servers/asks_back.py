"""Asks the host a question in the middle of a call: `ask(method, params)`; returns what it was answered.

With `patient` false it does not wait for an answer, as where none may come. With `in_round` it asks by an
`input_required` result, as servers of the modern era do. `complete`: the elicitation that it reports complete
right after the question. `until`: a file; once it exists, the server cancels the question and goes on with
the call, or, with `dies`, ends.
"""

import json
import os
import time

from _kit import arguments_of, introduce, is_call, messages, notification, result_of, send, text_of

asking = {}
for message in messages():
    if introduce(message, "ask"):
        continue
    if is_call(message, "ask"):
        asked = arguments_of(message)
        question = {"method": asked["method"], "params": asked.get("params", {})}
        if "inputResponses" in message["params"]:
            send(text_of(message, json.dumps({"result": message["params"]["inputResponses"]["question"]})))
            continue
        if asked.get("in_round"):
            asks = {"resultType": "input_required", "inputRequests": {"question": question}}
            send(result_of(message, {**asks, "requestState": "state"}))
            continue
        number = f"question {message['id']}"
        send({"jsonrpc": "2.0", "id": number, **question})
        if "complete" in asked:
            send(notification("notifications/elicitation/complete", elicitationId=asked["complete"]))
        if "until" in asked:
            while not os.path.exists(asked["until"]):
                time.sleep(0.01)
            if asked.get("dies"):
                os._exit(1)
            send(notification("notifications/cancelled", requestId=number))
            send(text_of(message, "went on"))
        elif asked.get("patient", True):
            asking[number] = message
        else:
            send(text_of(message, "asked"))
    elif message.get("id") in asking:
        send(text_of(asking.pop(message["id"]), json.dumps(message)))
