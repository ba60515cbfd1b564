"""Reports of the programs that come with the project, written as the command line writes them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tpucc.cli.main import main

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"


def report_of(source: Path, folder: Path) -> Path:
    """The page of the model in the file `source`, in `folder`. It is made once for all tests of this process."""
    place = folder / "report.html"
    place.write_bytes(_page(source, source.read_bytes()))
    return place


@cache
def _page(source: Path, text: bytes) -> bytes:
    with TemporaryDirectory() as folder:
        place = Path(folder) / "report.html"
        assert main(["report", str(source), "-o", str(place), "--quiet"]) == 0
        return place.read_bytes()


def report_of_text(text: str, folder: Path, name: str) -> Path:
    """The page of the model `text`, in a new `folder`, in which it is the file `name`."""
    folder.mkdir()
    (folder / name).write_text(text, "utf-8")
    return report_of(folder / name, folder)
