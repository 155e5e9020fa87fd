"""Sends a request to the host during a call: `ask(method, params)`; returns the answer.

With `patient` false it does not wait for the answer. With `in_round` it asks with an `input_required` result,
as modern servers do. `complete`: the elicitation that it reports as complete directly after the request.
`until`: a file; once it exists, the server cancels its request and continues the call, or, with `dies`, ends.
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
