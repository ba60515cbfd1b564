"""Comments, docstrings and pages that name a file, a module or a function of tpucc name one that there is."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from tests.support.worked import WORKED
from tpucc.labs import labs

ROOT = Path(__file__).parents[2]
FOLDERS = ("tpucc", "tests", "docs", "benchmarks", "programs")
KINDS = ("*.py", "*.md", "*.lark", "*.js", "*.css", "*.html", "*.toml")
EXAMPLES = {
    *("emil.py", "fred.py", "anna/allocation.py", "lab5/allocation.py", "autumn/allocation.py", "spring/allocation.py"),
    *("FILE.py", "FILE.toml", "mine.py", "mine.toml", "count.py", "relu_once.py", "student.py", "pass.py", "x.py", "y.py", "P.toml"),
    *("saturation.py", "reference.py"),
    *(
        "tests/test_lab.py",
        "data.py",
        "everywhere.py",
        "merge_products.py",
        "merge_by_rule.py",
        "test_merge.py",
        *(lab.file for lab in labs()),
    ),
}
"""Names that stand for the reader's own files."""
EXAMPLES |= {name for diff in WORKED.glob("*.diff") for name in re.findall(r"^\+\+\+ b/(\S+)", diff.read_text("utf-8"), re.MULTILINE)}

_FILE = re.compile(r"(?<![\w./{*-])(?:[ab]/)?((?:[\w-]+/)*[\w-]+\.(?:py|lark|js))\b(?!\()")
_NAME = re.compile(r"`(tpucc(?:\.\w+)+)`")


def _texts() -> list[Path]:
    found = [path for folder in FOLDERS for kind in KINDS for path in (ROOT / folder).rglob(kind)]
    kept = [path for path in found if not {"__pycache__", "reference"} & set(path.parts) and path != Path(__file__)]
    return [*kept, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Makefile"]


def test_files_that_are_named_exist() -> None:
    """A path is one of the tree's, however much of its beginning is left out; a name alone is that of some file."""
    known = [path.relative_to(ROOT).as_posix() for folder in FOLDERS for kind in KINDS for path in (ROOT / folder).rglob(kind)]
    places = (path for path in _texts() if path.relative_to(ROOT).parts[0] != "tests")
    lines = ((path, *line) for path in places for line in enumerate(path.read_text("utf-8").splitlines(), 1))
    named = ((path, number, name) for path, number, line in lines if " import " not in line for name in _FILE.findall(line))
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path, number, name in named
        if name not in EXAMPLES and not any(f"/{file}".endswith(f"/{name}") for file in known)
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_and_functions_that_are_named_exist() -> None:
    texts = (path for path in _texts() if path.suffix in (".py", ".md"))
    named = {(name, path.relative_to(ROOT).as_posix()) for path in texts for name in _NAME.findall(path.read_text("utf-8"))}
    wrong = [f"{path}: {name}" for name, path in sorted(named) if not _exists(name)]
    assert not wrong, "\n".join(wrong)


def _exists(name: str) -> bool:
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            value: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(value, part) and part not in getattr(value, "__annotations__", {}):
                return False
            value = getattr(value, part, None)
        return True
    return False
