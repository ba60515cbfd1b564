"""What the scripts of a page take from each other is there, is there in time, and is used; each file alone is for `make lint`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.support.scripts import scope_complaints
from tpucc.see.kit import SCRIPTS as KIT

ROOT = Path(__file__).resolve().parents[2]
SHARED = sorted({path.parent for path in (ROOT / "tpucc").glob("**/js/*.js")})
"""Folders of files that become one script, in the order of the package's `SCRIPTS`."""
MODULES = (ROOT / "docs" / "playground").glob("*.js")
ALONE = sorted(path for path in (*(ROOT / "tpucc").glob("**/*.js"), *MODULES) if path.parent not in SHARED)

STATES = 'const states = (() => ({ lines: ["a"] }))();\n'
LINKS = "/** Links. */\nconst links = (() => {\n  const at = (line) => states.lines[line];\n  return { at };\n})();\n"
MAIN = "document.title = links.at(0);\n"


def complaints(folder: Path, **scripts: str) -> list[str]:
    return scope_complaints(scripts, folder)


def test_files_may_use_each_other(tmp_path: Path) -> None:
    assert complaints(tmp_path, states=STATES, links=LINKS, main=MAIN) == []
    assert complaints(tmp_path, links=LINKS, states=STATES, main=MAIN) == [], "a function that is called later may name what comes later"


def test_a_name_that_is_nowhere_is_found_in_its_file_and_line(tmp_path: Path) -> None:
    assert complaints(tmp_path, links=LINKS, main=MAIN) == ["links:3: 'states' is not defined."]
    scripts = {"states": STATES, "links": LINKS, "main": MAIN.rstrip("\n"), "more": "\n\nlost();"}
    assert complaints(tmp_path, **scripts) == ["more:3: 'lost' is not defined."]


def test_a_name_that_nobody_uses_is_found(tmp_path: Path) -> None:
    [found] = complaints(tmp_path, states=STATES, links=LINKS)
    assert found.startswith("links:2: Variable 'links' is declared but never used")


def test_a_name_that_is_used_too_early_is_found(tmp_path: Path) -> None:
    assert complaints(tmp_path, main=MAIN, states=STATES, links=LINKS) == ["main:1: 'links' was used before it was defined."]


def test_a_name_that_two_files_define_is_found(tmp_path: Path) -> None:
    [found] = complaints(tmp_path, states=STATES, links=LINKS, more=STATES, main=MAIN)
    assert "`states` has already been declared" in found


@pytest.mark.parametrize("folder", SHARED, ids=lambda folder: str(folder.relative_to(ROOT)))
def test_the_scripts_of_a_page_fit_together(folder: Path, tmp_path: Path) -> None:
    names = import_module(".".join(folder.parent.relative_to(ROOT).parts)).SCRIPTS
    own = {path.stem: path for path in folder.glob("*.js")}
    assert sorted(own) == sorted(set(names) - (set(KIT) - set(own)))
    files = {f"{name}.js": own.get(name, ROOT / f"tpucc/see/kit/js/{name}.js").read_text("utf-8") for name in names}
    found = scope_complaints(files, tmp_path)
    assert [each for each in found if "never used" not in each or not any(f"'{name}'" in each for name in KIT)] == []


@pytest.mark.parametrize("path", ALONE, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_script_alone_has_all_that_it_uses(path: Path, tmp_path: Path) -> None:
    assert scope_complaints({path.name: path.read_text("utf-8")}, tmp_path) == []
