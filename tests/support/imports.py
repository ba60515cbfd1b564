"""The imports of the package's modules, read from their source: those under TYPE_CHECKING and inside functions, too."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def module_files() -> dict[str, Path]:
    """The file of each module of the package. The files that labs hand out aren't part of it."""
    files = (path for path in sorted((ROOT / "tpucc").rglob("*.py")) if "material" not in path.parts)
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def imports_of(files: Mapping[str, Path]) -> dict[str, set[str]]:
    """For each module the modules among `files` that it imports."""
    return {name: {*_imported(ast.parse(path.read_text("utf-8")), files)} - {name} for name, path in files.items()}


def _imported(tree: ast.Module, files: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports of the package are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in files or node.module in files:
                    yield inner if inner in files else node.module
