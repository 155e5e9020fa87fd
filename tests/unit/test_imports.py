"""Importing is quick because it loads little: asked of a fresh interpreter."""

import json
import subprocess
import sys

import pytest

HEAVY = {"aiohttp", "click", "jsonschema_rs", "mcp", "PIL", "pydantic", "pydantic_ai", "rich", "textual"}


@pytest.mark.parametrize("module", ["dragoman", "dragoman.config"])
def test_importing_loads_no_large_modules(module: str):
    code = f"import json, sys, {module}; print(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )

    assert HEAVY & set(json.loads(done.stdout)) == set()
