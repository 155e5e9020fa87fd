"""Runs its tools as tasks. Arguments: the era (`legacy` or `modern`), and a file for tasks and notes.

A task advances by one step with each `tasks/get`. `work` takes `steps` steps and returns `text`; `ask` needs
input first; `fail` ends with an error, `give_up` is cancelled by the server, `endless` never ends. `notes`
returns what the client has sent. `die` ends the process; tasks stay in the file until `forget`.
"""

import json
import os
import sys

from _kit import (
    LEGACY,
    MODERN,
    arguments_of,
    discovered,
    error_of,
    initialized,
    is_call,
    listed,
    messages,
    notification,
    progress_token_of,
    result_of,
    send,
    tool,
)

ERA, FILE = sys.argv[1:3]
EXTENSIONS = {"io.modelcontextprotocol/tasks": {}}
IS_MODERN = ERA == "modern"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
waiting = {}
"""`tasks/result` requests that wait for the end of a task."""
asked = {}
"""Our requests of a legacy client → the task that they are for."""


def load():
    try:
        with open(FILE) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"tasks": {}, "notes": [], "count": 0}


def save():
    with open(FILE, "w") as file:
        json.dump(state, file)


def shown(task_id):
    task = state["tasks"][task_id]
    ttl, poll = ("ttlMs", "pollIntervalMs") if IS_MODERN else ("ttl", "pollInterval")
    common = {"taskId": task_id, "status": task["status"], "statusMessage": task["message"]}
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    return {**common, **times, ttl: task["ttl"], poll: task["poll"]}


def result_for(task):
    return {"content": [{"type": "text", "text": task["text"]}], "_meta": {"from": "task"}}


def create(call):
    given = arguments_of(call)
    state["count"] += 1
    task_id = given.get("id", f"t{state['count']}")
    ttl = call["params"].get("task", {}).get("ttl", 60000)
    state["tasks"][task_id] = {
        "tool": call["params"]["name"], "left": given.get("steps", 2), "text": given.get("text", "done"),
        "steps": given.get("steps", 2), "token": progress_token_of(call) if given.get("counts") else None,
        "status": "working", "message": "started", "ttl": ttl, "poll": given.get("poll", 20), "answers": {},
    }  # fmt: skip
    save()
    if IS_MODERN:
        send({"jsonrpc": "2.0", "id": call["id"], "result": {"resultType": "task", **shown(task_id)}})
    else:
        send(result_of(call, {"task": shown(task_id)}))


def advance(task_id):
    task = state["tasks"][task_id]
    if task["status"] in ("completed", "failed", "cancelled") or task["tool"] == "endless":
        return
    if task["tool"] == "ask" and not task["answers"]:
        if not IS_MODERN and task["status"] != "input_required":
            send({"jsonrpc": "2.0", "id": f"q-{task_id}", "method": "elicitation/create", "params": {
                "message": "Who?", "requestedSchema": FORM,
                "_meta": {"io.modelcontextprotocol/related-task": {"taskId": task_id}}}})  # fmt: skip
            asked[f"q-{task_id}"] = task_id
        task["status"], task["message"] = "input_required", "waiting for a name"
        return
    task["left"] -= 1
    if task["token"] is not None:
        done = task["steps"] - task["left"]
        send(
            notification(
                "notifications/progress", progressToken=task["token"], progress=done, total=task["steps"]
            )
        )
    task["status"], task["message"] = "working", f"{task['left']} left"
    if task["left"] <= 0:
        ends = {"fail": "failed", "give_up": "cancelled"}
        task["status"], task["message"] = ends.get(task["tool"], "completed"), ""


def finish(task_id):
    """Answers `tasks/result` requests of a task that has ended."""
    task = state["tasks"][task_id]
    if task["status"] in ("completed", "failed"):
        for request in waiting.pop(task_id, []):
            if task["status"] == "failed":
                send(error_of(request, -32050, "it did not work"))
            else:
                send(result_of(request, result_for(task)))


def get(message, task_id):
    advance(task_id)
    task = state["tasks"][task_id]
    more = {}
    if IS_MODERN and task["status"] == "completed":
        more["result"] = result_for(task)
    if IS_MODERN and task["status"] == "failed":
        more["error"] = {"code": -32050, "message": "it did not work"}
    if IS_MODERN and task["status"] == "input_required":
        params = {"mode": "form", "message": "Who?", "requestedSchema": FORM}
        more["inputRequests"] = {"who": {"method": "elicitation/create", "params": params}}
    send(result_of(message, {**shown(task_id), **more}))
    finish(task_id)


def answered(task_id, content):
    task = state["tasks"][task_id]
    task["answers"], task["text"] = {"who": content}, f"hello {content}"


def handle(message, method, params):
    task_id = params.get("taskId")
    if method.startswith("tasks/") and task_id not in state["tasks"]:
        send(error_of(message, -32602, "no such task"))
    elif method == "tasks/get":
        get(message, task_id)
    elif method == "tasks/result" and not IS_MODERN:
        waiting.setdefault(task_id, []).append(message)
        finish(task_id)
    elif method == "tasks/update":
        answer = params["inputResponses"]["who"]
        answered(task_id, answer.get("content", {}).get("name", answer["action"]))
        send(result_of(message, {}))
    elif method == "tasks/cancel":
        state["tasks"][task_id]["status"] = "cancelled"
        send(result_of(message, {} if IS_MODERN else shown(task_id)))
    elif is_call(message, "notes"):
        text = json.dumps(state["notes"])
        send(result_of(message, {"content": [{"type": "text", "text": text}]}))
    elif is_call(message, "forget"):
        state["tasks"].clear()
        send(result_of(message, {"content": []}))
    elif is_call(message, "die"):
        os._exit(1)
    elif is_call(message):
        if IS_MODERN or "task" in params:
            create(message)
        else:
            send(error_of(message, -32601, "a task is required"))


TOOLS = [
    *(
        tool(name, execution={"taskSupport": "required"})
        for name in ("work", "ask", "fail", "give_up", "endless")
    ),
    tool("notes"),
    tool("die"),
    tool("forget"),
]
LEGACY_TASKS = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}

state = load()
for message in messages():
    method, params = message.get("method"), message.get("params", {})
    if method is None:
        if message.get("id") in asked:
            result = message.get("result", {"action": "refused"})
            answered(asked.pop(message["id"]), result.get("content", {}).get("name", result["action"]))
    elif method == "server/discover":
        found = discovered(message, [MODERN], extensions=EXTENSIONS)
        send(found if IS_MODERN else error_of(message, -32601, "unknown"))
    elif method == "initialize":
        send(initialized(message, protocolVersion=LEGACY, capabilities={"tools": {}, "tasks": LEGACY_TASKS}))
    elif method == "tools/list":
        send(listed(message, *TOOLS))
    elif method == "ping":
        send(result_of(message, {}))
    elif "id" in message:
        if method.startswith("tasks/") or not is_call(message, "notes"):
            state["notes"].append([method, params.get("taskId") or params.get("name")])
        handle(message, method, params)
    save()
