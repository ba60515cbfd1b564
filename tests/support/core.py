"""The core of the package: its modules, a copy of it alone, and the tests that need nothing else."""

from __future__ import annotations

import ast
import shutil
import sys
import tomllib
from collections.abc import Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

from tests.support.imports import ROOT, module_files
from tests.support.package_copies import keep_compiled
from tpucc import _HOME_OF as HOMES

CONTRACT = "the core imports nothing of the annex"
NEEDED = ("numpy", "lark", "networkx", "msgspec")
"""The distributions that the core needs."""
FOR_TESTS = ("pytest", "pluggy", "iniconfig", "packaging", "pygments", "hypothesis", "sortedcontainers")
"""Those that its tests need, too."""


@cache
def core_parts() -> tuple[str, ...]:
    """The packages and modules that the contract of pyproject.toml calls the core."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    (found,) = (contract["source_modules"] for contract in contracts if contract["name"] == CONTRACT)
    return tuple(found)


def is_core(module: str) -> bool:
    return _within(module, core_parts())


def core_files() -> list[Path]:
    """The files of the core's modules."""
    return [path for name, path in module_files().items() if is_core(name)]


def _within(module: str, parts: Sequence[str]) -> bool:
    return any(module == part or module.startswith(f"{part}.") for part in parts)


def copy_core(folder: Path) -> None:
    """Copies the core's folders and files into an empty folder, with what they read (machines, the grammar)."""
    package = folder / "tpucc"
    package.mkdir(parents=True)
    shutil.copy(ROOT / "tpucc" / "__init__.py", package)
    for part in core_parts():
        place = Path(*part.split("."))
        if (ROOT / place).is_dir():
            shutil.copytree(ROOT / place, folder / place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy((ROOT / place).with_suffix(".py"), package)
    shutil.copytree(ROOT / "tpucc" / "targets", package / "targets")
    keep_compiled(package)


def install_alone(distributions: Sequence[str], folder: Path) -> None:
    """Links what these distributions have installed into an empty folder: a place where nothing else can be imported."""
    folder.mkdir()
    for name in distributions:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or () if file.parts[0] not in ("..", "__pycache__")}:
            if not (folder / top).exists():
                (folder / top).symlink_to(found.locate_file(top))


def isolated(path: Sequence[Path], *arguments: str) -> list[str]:
    """The command that runs Python with nothing to import but the standard library and what is in the folders of `path`: `arguments` are a
    program and its arguments."""
    return [sys.executable, "-I", "-S", "-c", f"import sys; sys.path += {list(map(str, path))!r}; {arguments[0]}", *arguments[1:]]


def core_tests() -> list[Path]:
    """The files of tests/unit that import nothing but the core, in themselves and by what they share."""
    return [path for path in sorted((ROOT / "tests" / "unit").glob("test_*.py")) if all(map(_stands, _imports(path)))]


def _stands(module: str) -> bool:
    root = module.split(".")[0]
    return is_core(module) if root == "tpucc" else root in ("tests", "_pytest", *sys.stdlib_module_names, *NEEDED, *FOR_TESTS)


def _imports(path: Path) -> set[str]:
    """What a file of tests imports, with what those of the tests import that it imports."""
    found, files = set[str](), [path]
    for file in files:
        new = _named(file) - found
        found |= new
        files += [_file(module) for module in new if module.startswith("tests.")]
    return found


@cache
def _named(path: Path) -> frozenset[str]:
    """What one file imports; in the place of `tpucc`, the homes of its names that the file uses."""
    tree = ast.parse(path.read_text("utf-8"))
    found = set[str]()
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                found.update(alias.name for alias in names if alias.name != "tpucc")
            case ast.ImportFrom(module=str(module), names=names):
                inner = [f"{module}.{alias.name}" for alias in names]
                found.update(name if module.split(".")[0] in ("tests", "tpucc") and _file(name).exists() else module for name in inner)
            case ast.Attribute(value=ast.Name(id="tpucc"), attr=name):
                found.add(HOMES.get(name, f"tpucc.{name}"))
    return frozenset(found)


def _file(module: str) -> Path:
    place = ROOT / Path(*module.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
