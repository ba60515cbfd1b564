"""Archives: a lab for students, with tpucc without the lab's solution and the pages that its handout names; and an autograder for
Gradescope."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any

from tpucc.guest.jails import grader_folder
from tpucc.interop.programs import folder as programs_folder
from tpucc.labs.grading import run
from tpucc.labs.here import executed
from tpucc.labs.lab import MATERIAL, Lab, Term
from tpucc.labs.pages import PAGES, named, pages
from tpucc.labs.solutions import RECORDED, REFERENCE, recorded_file, recording
from tpucc.labs.start import starting_files, text
from tpucc.labs.strip import stripped_file
from tpucc.version import VERSION

_DATE = (1980, 1, 1, 0, 0, 0)
"""The time of all entries, so that the same lab gives the same bytes."""
DEPENDENCIES = ("numpy>=2.1", "lark>=1.2", "networkx>=3.3", "graphviz>=0.20.3", "click>=8.1.7", "rich>=13.7", "msgspec>=0.18.6")
SOLUTIONS = rf"labs/\w+/{MATERIAL}/reference\b"
"""The names of files that no archive for students has."""
SCRIPTS = Path(__file__).parent / "gradescope"


def for_students(lab: Lab, term: Term) -> bytes:
    """A zip archive: the lab's folder, the pages that its texts name, tpucc with stubs where the lab's solution stands, a test that runs
    the lab's public tests."""
    name = f"lab{lab.number}"
    files = {f"{name}/{file}": content.encode() for file, content in starting_files(lab, term).items()}
    names = named(content.decode() for content in files.values())
    files |= _package(frozenset({lab.number}), solutions=False)
    files |= pages(names, files)
    files[f"tpucc/labs/{RECORDED.name}"] = recorded_file(references(lab, term))
    extras = f"\n[project.optional-dependencies]\n{lab.extra} = {json.dumps(lab.needs)}\n" if lab.extra else ""
    words = {"version": f"{VERSION}+{name}", "dependencies": json.dumps(_dependencies()), "extras": extras}
    files["pyproject.toml"] = text("project.toml", **words).encode()
    files["tests/test_lab.py"] = text("test_lab.txt", name=name).encode()
    told = {"itself": f"'.[{lab.extra}]'" if lab.extra else ".", "pages": f" The pages that it names are in `{PAGES}`." if names else ""}
    files["README.md"] = text("README.md", name=name, title=lab.title, file=lab.file, **told).encode()
    return _zipped(files)


def for_gradescope(lab: Lab, term: Term, seed: int) -> bytes:
    """The archive that Gradescope takes as an autograder: `setup.sh`, `run_autograder`, tpucc, and which lab, term and seed."""
    files = _package(frozenset(), solutions=True)
    files |= {path.name: path.read_bytes() for path in sorted(SCRIPTS.iterdir()) if path.is_file()}
    files["requirements.txt"] = "".join(f"{line}\n" for line in (*_dependencies(), *lab.needs)).encode()
    files["lab.json"] = (json.dumps({"lab": lab.number, "term": term.name, "seed": seed}) + "\n").encode()
    return _zipped(files)


def references(lab: Lab, term: Term) -> dict[str, Any]:
    """What the public tests compare with, by its keys: all that they ask while the lab's own solution is tested."""
    lab.require()
    with recording() as made:
        lab.words(term)
        if lab.functions:
            solution = executed(lab.material(REFERENCE, term), lab.material_folder / REFERENCE)
            for test in lab.public(term):
                run(test, solution)
    return made


def _package(labs: frozenset[int], solutions: bool) -> dict[str, bytes]:
    """The package's files, with the programs inside, as in a wheel; those of labs' solutions only where these are asked for."""
    package, found = grader_folder(), dict[str, bytes]()
    for name, path in _files(package):
        if solutions or not re.match(SOLUTIONS, name):
            whole = stripped_file(path, package, labs)
            found[f"tpucc/{name}"] = path.read_bytes() if whole is None else whole.encode()
    return found | {f"tpucc/programs/{name}": path.read_bytes() for name, path in _files(programs_folder())}


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder that are in no way made of others, with their names inside it."""
    for path in folder.rglob("*"):
        inside = path.relative_to(folder)
        if path.suffix not in (".pyc", ".tmp") and "build" not in inside.parts and path.is_file():
            yield inside.as_posix(), path


def _dependencies() -> list[str]:
    """What tpucc needs, as its own metadata says it."""
    try:
        said = [line for line in requires("tpucc") or () if "extra ==" not in line]
    except PackageNotFoundError:
        said = []
    return said or list(DEPENDENCIES)


def _zipped(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = (0o755 if name in ("run_autograder", "setup.sh") else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, files[name])
    return stream.getvalue()
