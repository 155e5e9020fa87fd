"""Returns valid but unusual results that some clients cannot read: `act(how)`."""

from _kit import arguments_of, error_of, introduce, is_call, listed, messages, result_of, send, tool

RESULTS = {
    "no_structured": {"content": [{"type": "text", "text": "forty-two"}]},
    "unknown_content": {
        "content": [
            {"type": "text", "text": "before"},
            {"type": "hologram", "depth": 3},
            {"type": "text", "text": "after", "newField": 1},
        ]
    },
}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

for message in messages():
    if message.get("method") == "tools/list":
        send(listed(message, tool("act", outputSchema=SCHEMA)))
    elif is_call(message, "act"):
        how = arguments_of(message)["how"]
        if how == "own_timeout":
            send(error_of(message, -32001, "Request timed out"))
        elif how != "silence":
            send(result_of(message, RESULTS[how]))
    else:
        introduce(message)
