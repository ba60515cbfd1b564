"""Prints the compiler as a book: `make book`, one page with the code of the core in reading order.

A chapter is a package. Chapters stand in the order in which packages may import each other, the lowest first, and the files of a chapter in
the order of their imports: so a name is read after its definition. The text of a chapter is the package's docstring, and the
text of a section is the docstring of its file.
"""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parents[2]
WORK, BOOK = ROOT / "build" / "book-pages", ROOT / "build" / "book"
PACKAGE = ROOT / "tpucc"
CONTRACT = "the core imports nothing of the annex"
"""The name of the import contract in pyproject.toml whose sources are the core."""
LAYERS = "imports point down only"


@dataclass(frozen=True, slots=True)
class Section:
    """A file: its docstring, and the first line of the code below it (1 is the file's first)."""

    path: Path
    text: str
    code_from: int
    code_lines: int


def main() -> int:
    """Lays out and builds the book. Returns the exit status."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(BOOK, ignore_errors=True)
    (WORK / "_static").mkdir(parents=True)
    shutil.copyfile(Path(__file__).with_name("book_conf.py"), WORK / "conf.py")
    shutil.copyfile(Path(__file__).with_name("book.css"), WORK / "_static" / "book.css")
    chapters = list(reading_order())
    (WORK / "index.md").write_text("\n\n".join([PREFACE, toctree(chapters)]), "utf-8")
    for name, paths in chapters:
        (WORK / f"{name}.md").write_text(chapter(name, paths), "utf-8")
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-b", "singlehtml", str(WORK), str(BOOK)]
    if status := subprocess.run(words, check=False).returncode:
        return status
    print(f"{BOOK.relative_to(ROOT)}/index.html: {len(chapters)} chapters, {sum(len(paths) for _, paths in chapters)} files")
    return 0


PREFACE = """\
# The compiler

All code from the source text of a network to the integers and cycles of a program, as one reads it: the lowest packages first. What the
annex adds (pictures, files from elsewhere, training, coursework, the command line) is not here, and nothing here imports it.
"""


def reading_order() -> Iterator[tuple[str, list[Path]]]:
    """The packages of the core, the lowest first, each with its files in the order of their imports."""
    contracts = {contract["name"]: contract for contract in settings()["tool"]["importlinter"]["contracts"]}
    core = {module.removeprefix("tpucc.") for module in contracts[CONTRACT]["source_modules"]}
    layers = [name.strip().removeprefix("tpucc.") for layer in contracts[LAYERS]["layers"] for name in layer.replace(":", "|").split("|")]
    order = [name for name in reversed(layers) if name in core]
    if missing := core - set(order):
        raise SystemExit(f"not among the layers of pyproject.toml: {', '.join(sorted(missing))}")
    for name in order:
        folder, file = PACKAGE / name, PACKAGE / f"{name}.py"
        paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [file]
        yield name, by_imports(paths)


def settings() -> dict[str, dict[str, dict[str, list[dict[str, list[str]]]]]]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def by_imports(paths: list[Path]) -> list[Path]:
    """The files, each after those that it imports, and else by name."""
    files = {module_of(path): path for path in paths}
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for module, path in files.items():
        graph.add_edges_from((found, module) for found in imported(path) & files.keys() if found != module)
    return [files[module] for module in nx.lexicographical_topological_sort(graph)]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> set[str]:
    """The modules that a file imports: for `from a import b` it is `a.b` if that is a module, and else `a`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {inner if is_module(inner) else node.module for inner in (f"{node.module}.{name.name}" for name in node.names)}
    return found


def is_module(name: str) -> bool:
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


def toctree(chapters: list[tuple[str, list[Path]]]) -> str:
    return "```{toctree}\n:maxdepth: 2\n:numbered:\n\n" + "\n".join(name for name, _ in chapters) + "\n```"


def chapter(name: str, paths: list[Path]) -> str:
    """A package: the docstring of its `__init__.py`, and a section for each file with code."""
    sections = [section(path) for path in paths]
    whole = next((found for found in sections if found.path.name == "__init__.py" and found.path.parent.name == name), None)
    parts = [f"# {name}", whole.text if whole else ""]
    for found in sections:
        shown = found.path.relative_to(ROOT)
        text = "" if found is whole else found.text
        if found.code_lines:
            up = "../" * len(WORK.relative_to(ROOT).parts)
            listing = f"```{{literalinclude}} {up}{shown}\n:language: python\n:lines: {found.code_from}-\n:lineno-match:\n```"
            parts.append("\n\n".join(part for part in (f"## {shown}", text, listing) if part))
    return "\n\n".join(part for part in parts if part) + "\n"


def section(path: Path) -> Section:
    source = path.read_text("utf-8")
    tree = ast.parse(source)
    text = ast.get_docstring(tree) or ""
    docstring = tree.body[0] if text else None
    lines = source.splitlines()
    first = (docstring.end_lineno or 0) if docstring else 0
    first = next((at for at in range(first, len(lines)) if lines[at].strip()), len(lines))
    return Section(path, text, first + 1, len(lines) - first)


if __name__ == "__main__":
    sys.exit(main())
