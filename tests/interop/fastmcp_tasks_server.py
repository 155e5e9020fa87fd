"""A server made with FastMCP whose tools run as tasks, over HTTP: `python fastmcp_tasks_server.py PORT`, in
the interop environment. With EXPIRE_SECONDS set, tasks are forgotten that long after they were created."""

import asyncio
import os
import sys
from datetime import timedelta

import docket
import fastmcp_tasks.creation
import mcp_types
from fastmcp import Context, FastMCP
from fastmcp.dependencies import Progress
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

if seconds := os.environ.get("EXPIRE_SECONDS"):
    make = docket.Docket.__init__

    def with_ttl(self, *args, **options):
        make(self, *args, **{**options, "execution_ttl": timedelta(seconds=float(seconds))})

    docket.Docket.__init__ = with_ttl
    fastmcp_tasks.creation.TASK_MAPPING_TTL_BUFFER_SECONDS = 0

server = FastMCP("fastmcp-tasks")
server.add_extension(TasksExtension())
QUICK = TaskConfig(mode="required", poll_interval=timedelta(milliseconds=100))
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
working = 0
cancelled = 0


@server.tool(task=QUICK)
async def work(seconds: float, progress: Progress = Progress()) -> str:  # noqa: B008 - FastMCP's form
    """Works for a while."""
    global working, cancelled
    await progress.set_message("at work")
    working += 1
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return f"worked {seconds} s"


@server.tool(task=QUICK)
async def greet(context: Context) -> mcp_types.InputRequiredResult | str:
    """Needs a name."""
    if context.input_responses:
        return f"hello {context.input_responses['who'].content['name']}"
    params = mcp_types.ElicitRequestFormParams(message="Who?", requested_schema=FORM)
    return mcp_types.InputRequiredResult(input_requests={"who": mcp_types.ElicitRequest(params=params)})


@server.tool(task=QUICK)
async def fail() -> str:
    """Does not work."""
    raise ValueError("it did not work")


@server.tool
def count_working() -> int:
    """How many calls of `work` have begun."""
    return working


@server.tool
def count_cancelled() -> int:
    """How many calls of `work` were cancelled."""
    return cancelled


if __name__ == "__main__":
    server.run(
        transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR"
    )
