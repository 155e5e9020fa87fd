"""Writes each Python program of the README and the guides to a file in FOLDER, for the type checker."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def main(folder: Path) -> None:
    for document in [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]:
        for number, program in enumerate(PROGRAM.findall(document.read_text(encoding="utf-8")), start=1):
            name = document.stem.lower().replace("-", "_")
            (folder / f"{name}_{number}.py").write_text(program, encoding="utf-8")


main(Path(sys.argv[1]))
