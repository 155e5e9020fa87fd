"""Signals that ask the command to end."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, Final

_POLITE: Final = ("SIGTERM", "SIGHUP")


def cancel_on_signals(task: asyncio.Task[Any]) -> None:
    """Cancels the task when the program is asked to end. Where event loops take no signals (Windows), the
    program ends at once instead; Ctrl-C works everywhere."""
    loop = asyncio.get_running_loop()
    for name in _POLITE:
        if (number := getattr(signal, name, None)) is not None:
            try:
                loop.add_signal_handler(number, task.cancel)
            except NotImplementedError:
                return
