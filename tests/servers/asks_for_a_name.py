"""Asks for a name with a form before it answers: with a request (legacy era) or in a result (modern era).

`greet` returns the answer as JSON; with the argument `declared` it returns the client's capabilities, without
extensions.
"""

import json

from _kit import introduce, messages, result_of, send

FORM = {
    "message": "Your name?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
META_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
declared, waiting = {}, {}


def text(value):
    return {"resultType": "complete", "content": [{"type": "text", "text": json.dumps(value)}]}


for message in messages():
    method, params = message.get("method"), message.get("params") or {}
    if method == "initialize":
        declared = params["capabilities"]
    declared = (params.get("_meta") or {}).get(META_CAPABILITIES, declared)
    if method is None:
        call = waiting.pop(message["id"])
        send(result_of(call, text(message.get("result") or message["error"]["message"])))
    elif method != "tools/call":
        introduce(message, "greet")
    elif params["arguments"].get("declared"):
        send(result_of(message, text({key: value for key, value in declared.items() if key != "extensions"})))
    elif META_CAPABILITIES not in (params.get("_meta") or {}):
        waiting["question"] = message
        send({"jsonrpc": "2.0", "id": "question", "method": "elicitation/create", "params": FORM})
    elif "inputResponses" in params:
        send(result_of(message, text(params["inputResponses"]["name"])))
    else:
        asked = {"name": {"method": "elicitation/create", "params": FORM}}
        send(result_of(message, {"resultType": "input_required", "inputRequests": asked}))
