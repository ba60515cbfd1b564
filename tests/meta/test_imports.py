"""Modules import each other in one direction: no circle, wherever in a module an import stands, and nothing of the annex in the core."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import pytest

from tests.support.core import is_core
from tests.support.imports import imports_of, module_files


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """For each module of the package those that it imports."""
    return imports_of(module_files())


def test_no_module_imports_what_imports_it(imports: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        pytest.fail(f"each of these modules is imported by the next: {', '.join(error.args[1])}")


def test_no_module_asks_the_package_for_its_public_names(imports: dict[str, set[str]]) -> None:
    """`tpucc` names what its modules define: a module that imports `tpucc` would import itself."""
    assert [name for name, found in imports.items() if "tpucc" in found] == []


def test_the_core_imports_the_core_alone(imports: dict[str, set[str]]) -> None:
    """The contract of pyproject.toml sees no import under TYPE_CHECKING."""
    annex = {name: {other for other in found if not is_core(other)} for name, found in imports.items() if is_core(name)}
    assert {name: found for name, found in annex.items() if found} == {}
