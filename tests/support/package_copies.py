"""Copies of the package in other folders, which processes import."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from tpucc.guest.jails import grader_folder


def keep_compiled(folder: Path) -> None:
    """Gives the modules of `folder`, a copy of the package, the compiled forms that this checkout's have, where the text is the same: to
    compile them all again takes seconds. They lie beside the modules, so that `plain_environment` finds them."""
    package = grader_folder()
    for path in folder.rglob("*.py"):
        own = package / path.relative_to(folder)
        compiled = _compiled(own)
        if compiled.is_file() and own.read_bytes() == path.read_bytes():
            shutil.copystat(own, path)  # a compiled form is of one time of the module
            path.with_name("__pycache__").mkdir(exist_ok=True)
            shutil.copyfile(compiled, path.with_name("__pycache__") / compiled.name)


def plain_environment(path: Path) -> dict[str, str]:
    """The environment of a process that imports the package in the folder `path`, with what is compiled beside the modules."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPYCACHEPREFIX"} | {"PYTHONPATH": str(path)}


def _compiled(module: Path) -> Path:
    """Where this Python keeps the compiled form of a module: see `tests/conftest.py`."""
    name, prefix = f"{module.stem}.{sys.implementation.cache_tag}.pyc", os.environ.get("PYTHONPYCACHEPREFIX")
    return Path(prefix, *module.parent.parts[1:], name) if prefix else module.with_name("__pycache__") / name
