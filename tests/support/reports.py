"""Reports of the programs that come with the project, written as the command line writes them."""

from __future__ import annotations

from pathlib import Path

from tpucc.cli.main import main

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def report_of(source: Path, folder: Path) -> Path:
    """The page of the model in the file `source`, in `folder`."""
    place = folder / "report.html"
    assert main(["report", str(source), "-o", str(place), "--quiet"]) == 0
    return place


def report_of_text(text: str, folder: Path, name: str) -> Path:
    """The page of the model `text`, in a new `folder`, in which it is the file `name`."""
    folder.mkdir()
    (folder / name).write_text(text, "utf-8")
    return report_of(folder / name, folder)
