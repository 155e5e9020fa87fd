"""Has one tool, `buy`, which requires the page of elicitation `e1` (error -32042) and reports it complete at
once.

With the argument `late` it reports it when `finish` is called.
"""

import sys

from _kit import error_of, introduce, is_call, messages, notification, send, text_of

COMPLETE = notification("notifications/elicitation/complete", elicitationId="e1")
PAGE = {"mode": "url", "elicitationId": "e1", "url": "https://pay.example/1", "message": "Pay"}
is_complete = False
for message in messages():
    if is_call(message, "buy") and not is_complete:
        refusal = error_of(message, -32042, "pay first", {"elicitations": [PAGE]})
        is_complete = "late" not in sys.argv
        other = notification("notifications/elicitation/complete", elicitationId="other")
        send(refusal, *((other, COMPLETE) if is_complete else ()))
    elif is_call(message, "buy"):
        send(text_of(message, "bought"))
    elif is_call(message, "finish"):
        is_complete = True
        send(COMPLETE, text_of(message, "finished"))
    else:
        introduce(message, "buy", "finish")
