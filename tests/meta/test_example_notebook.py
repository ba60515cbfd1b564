"""The example notebook shows what its cells give now, and nothing that another run or another machine would change."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from numpy.lib.npyio import NpzFile

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOK = DOCS / "notebook.ipynb"


def page_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebook_page", DOCS / "notebook_page.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGE = page_module()


def cells(kind: str) -> list[dict[str, object]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == kind]


def test_every_cell_gives_what_the_notebook_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS)
    names: dict[str, object] = {}
    pairs = [(PAGE.run_cell(source, names), shown) for source, shown in PAGE.code_cells(NOTEBOOK)]
    for value in names.values():
        if isinstance(value, NpzFile):
            value.close()  # a kernel's end does so; here the file would be found open in another test
    assert len(pairs) > 8
    for now, shown in pairs:
        assert now == shown, "run make docs"


@pytest.mark.soak
def test_a_kernel_gives_the_same_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way that `make docs` goes."""
    pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    assert PAGE.executed(NOTEBOOK) == NOTEBOOK.read_text("utf-8")


def test_nothing_in_it_changes_by_itself() -> None:
    text = NOTEBOOK.read_text("utf-8")
    assert not re.search(r'"execution_count": \d|"execution": |iopub|/(home|root|tmp|Users)/|\b0x[0-9a-f]{6,}|object at', text)
    assert set(json.loads(text)["metadata"]["language_info"]) == {"name"}


def test_every_stage_is_shown_as_a_picture_and_every_code_cell_is_introduced() -> None:
    outputs = [output for cell in cells("code") for output in cell["outputs"]]  # type: ignore[attr-defined]
    pictures = ["".join(output["data"]["image/svg+xml"]) for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert [ElementTree.fromstring(svg).get("id") for svg in pictures] == ["graph", "layers", "tiles", "timeline", "roofline"]
    assert all(output["output_type"] != "error" for output in outputs)
    assert len(NOTEBOOK.read_bytes()) < 1 << 20


def test_links_of_the_notebook_lead_somewhere() -> None:
    links = [link for cell in cells("markdown") for link in re.findall(r"\]\((?!https?:)([^)#]+)", "".join(cell["source"]))]  # type: ignore[arg-type]
    assert links
    assert [link for link in links if not (DOCS / link).exists()] == []


@pytest.mark.parametrize(
    ("source", "text"), [("1 + 1", "2"), ("print(3)\n4", "3\n4"), ("x = 5", ""), ("None", ""), ("if True:\n    print(6)", "6\n"), ("", "")]
)
def test_a_cell_shows_what_it_prints_and_its_value(source: str, text: str) -> None:
    assert PAGE.run_cell(source, {}) == text


def test_a_cell_shows_its_value_and_nothing_else() -> None:
    """Libraries that notice a notebook draw what they should only have returned as text."""
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        assert all(output["output_type"] != "display_data" for output in cell.get("outputs", []))
