"""T113: a hook that runs a module of Python does not run a file of the repository in its place."""

import sys
from pathlib import Path

from dragoman.hooks import commands


async def test_t113_a_python_module_is_not_taken_from_the_folder(tmp_path: Path):
    (tmp_path / "json").mkdir()
    (tmp_path / "json" / "__init__.py").write_text("")
    (tmp_path / "json" / "tool.py").write_text("print('planted')")
    env = commands.environment({"PATH": "/usr/bin:/bin", "PYTHONSAFEPATH": ""}, {"PYTHONSAFEPATH": ""})
    ended = await commands.run(f"{sys.executable} -m json.tool --compact", b"[1]", env=env, cwd=str(tmp_path))
    assert env["PYTHONSAFEPATH"] == "1"
    assert b"planted" not in ended.stdout
