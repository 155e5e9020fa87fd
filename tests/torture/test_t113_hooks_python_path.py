"""T113: A hook that runs a Python module does not run a file of the repository instead."""

import sys
from pathlib import Path

from dragoman.hooks import commands


async def test_t113_a_python_module_is_not_imported_from_the_folder(tmp_path: Path):
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text("")
    (tmp_path / "json" / "tool.py").write_text("print('planted')")
    env = commands.environment({"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": ""}, {"PYTHONSAFEPATH": ""})
    ended = await commands.run(f"{sys.executable} -m json.tool --compact", b"[1]", env=env, cwd=str(tmp_path))
    assert env["PYTHONSAFEPATH"] == "1"
    assert b"planted" not in ended.stdout
