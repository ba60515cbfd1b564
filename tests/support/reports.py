"""Reports of the programs that come with the project, written as the command line writes them."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import tpucc
from tpucc.cli.main import main

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
SHARED: list[Path] = []
"""A folder of all processes of this run, in which each finds the reports that another has made; none where there is one process."""


@cache
def executable_of(stem: str) -> tpucc.Executable:
    """The program of `programs/` that is called so, compiled once for all tests of this process."""
    return tpucc.compile(PROGRAMS / f"{stem}.tpu")


def report_of(source: Path, folder: Path) -> Path:
    """The page of the model in the file `source`, in `folder`. It is made once for all tests of this run."""
    place = folder / "report.html"
    place.write_bytes(_page(source, source.read_bytes()))
    return place


@cache
def _page(source: Path, text: bytes) -> bytes:
    """The report, which is made of the text and the name of a source, and of the weights beside a program."""
    if not SHARED:
        return _made(source)
    weights = source.parent if source.is_relative_to(PROGRAMS) else ""
    place = SHARED[0] / f"{hashlib.sha256(f'{weights}/{source.name}/'.encode() + text).hexdigest()}.html"
    if not place.is_file():
        SHARED[0].mkdir(exist_ok=True)
        beside = place.with_suffix(f".{os.getpid()}")
        beside.write_bytes(_made(source))
        beside.replace(place)  # in one step: another process may look for it
    return place.read_bytes()


def _made(source: Path) -> bytes:
    with TemporaryDirectory() as folder:
        place = Path(folder) / "report.html"
        assert main(["report", str(source), "-o", str(place), "--quiet"]) == 0
        return place.read_bytes()


def report_of_text(text: str, folder: Path, name: str) -> Path:
    """The page of the model `text`, in a new `folder`, in which it is the file `name`."""
    folder.mkdir()
    (folder / name).write_text(text, "utf-8")
    return report_of(folder / name, folder)
