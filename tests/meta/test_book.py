"""The compiler as a book: every file of the core once, after the files that it imports."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs" / "site"))

import book  # noqa: E402 - the folder is on the path from here on


@pytest.mark.soak
def test_a_file_stands_after_what_it_imports() -> None:
    chapters = list(book.reading_order())
    paths = [path for _, found in chapters for path in found]
    assert len(paths) == len(set(paths))
    place = {book.module_of(path): at for at, path in enumerate(paths)}
    late = [(book.module_of(path), name) for at, path in enumerate(paths) for name in book.imported(path) if place.get(name, at) > at]
    assert late == []
    packages = {path.parent for path in paths if path.parent != book.PACKAGE}
    assert {path for folder in packages for path in folder.rglob("*.py")} <= set(paths)


def test_a_docstring_is_text_and_the_code_begins_below_it(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text('"""What it holds.\n\nMore of it.\n"""\n\n\nx = 1\ny = 2\n')
    assert book.section(path) == book.Section(path, "What it holds.\n\nMore of it.", 7, 2)
    path.write_text('"""Only words."""\n')
    assert book.section(path).code_lines == 0
