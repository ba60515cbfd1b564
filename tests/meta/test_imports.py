"""Modules import each other in one direction: no circle, wherever in a module an import stands."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support.imports import imports_of, module_files

STILL_TO_COME = {
    ("tpucc.isa.instructions", "tpucc.isa.sentences"),
    ("tpucc.isa.program", "tpucc.isa.container"),
    ("tpucc.lowering.tileprogram", "tpucc.lowering.tiletext"),
}
"""Imports that close a circle, and that will go."""


def test_no_module_imports_what_imports_it() -> None:
    imports = imports_of(module_files())
    for module, imported in STILL_TO_COME:
        imports[module].remove(imported)
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"each of these modules is imported by the next: {', '.join(error.args[1])}")


def test_no_module_asks_the_package_for_its_public_names() -> None:
    """`tpucc` names what its modules define: a module that imports `tpucc` would import itself."""
    assert [name for name, imported in imports_of(module_files()).items() if "tpucc" in imported] == []
