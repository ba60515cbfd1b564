"""Builds the playground: `python docs/playground/build_playground.py -o FOLDER [--pyodide FOLDER|URL]`. `make site` does it, too.

The folder is for any static host. It has the page, tpucc with the pure Python packages that it needs, reports of all programs, and the
editor, CodeMirror, as modules. These are fetched from the npm registry in the versions of packages.json, are checked, and are kept in
build/npm. Pyodide is copied from a folder, or the page loads it from an address.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from string import Template
from tempfile import TemporaryDirectory, TemporaryFile
from typing import Any

import tpucc
from tpucc.interop import programs
from tpucc.labs import find
from tpucc.labs.lab import Term
from tpucc.labs.puzzles.puzzle import puzzles
from tpucc.playground.engine import compiled
from tpucc.playground.requests import Model
from tpucc.target import load_target, target_names
from tpucc.watch.page import EDITOR, IMPORTS, head, language
from tpucc.watch.page import FOLDER as WATCH
from tpucc.watch.site import ICON_PICTURE

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / "build" / "npm"
REGISTRY = "https://registry.npmjs.org"
PACKAGES = json.loads((HERE / "packages.json").read_text("utf-8"))
PUBLIC = f"https://cdn.jsdelivr.net/pyodide/v{PACKAGES['pyodide']['version']}/full/"
"""Pyodide's public distribution."""
LOCK = "pyodide-lock.json"
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip", LOCK)
NATIVE = ("numpy", "msgspec")
"""Packages with code for WebAssembly, from Pyodide's distribution."""
PURE = ("lark", "graphviz")
"""Packages of Python alone, from the environment that builds."""
ARCHIVE, SNAPSHOT = "python.zip", "python.memory"
SCRIPTS = (
    "main.js",
    "answers.js",
    "engine.js",
    "files.js",
    "link.js",
    "drafts.js",
    "comparing.js",
    "frames.js",
    "offline.js",
    "prose.js",
    "queue.js",
    "saying.js",
    "shown.js",
    "worker.js",
    "playground.css",
)
SHARED = ("editor.js", "boxes.js", "editor.css")
"""Of the page of `tpucc watch`."""
SLOW = ("imdb_lstm",)
"""Programs whose reports are too large to be kept beside the page."""


class BuildError(Exception):
    """What can't be had, in words."""


class UnreachableError(BuildError):
    """A package isn't in the cache, and the registry doesn't give it."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Builds the playground as a static page.")
    made = parser.add_mutually_exclusive_group(required=True)
    made.add_argument("-o", "--output", type=Path, metavar="FOLDER")
    made.add_argument("--editor", action="store_true", help="put the editor into the package alone, for the page of tpucc watch")
    parser.add_argument("--pyodide", default=PUBLIC, metavar="FOLDER|URL", help=f"where Pyodide is from (default: {PUBLIC})")
    parser.add_argument("--reports", default="", metavar="NAME,…", help="make reports of these programs only")
    asked = parser.parse_args()
    try:
        if asked.editor:
            write_editor(EDITOR)
            return 0
        print("playground: making reports, Python's memory and the editor takes a minute or more", file=sys.stderr)
        build(asked.output, asked.pyodide, [name for name in asked.reports.split(",") if name])
        print(
            f"playground: {asked.output} is for any static host; here: {sys.executable} -m http.server --bind 127.0.0.1 -d {asked.output}"
        )
    except BuildError as error:
        print(f"playground: {error}", file=sys.stderr)
        return 1
    return 0


def build(folder: Path, pyodide: str = PUBLIC, reports: Iterable[str] = ()) -> None:
    """Writes the page and its Python into `folder`, with the reports of these programs, or of all. Raises `BuildError`."""
    write_page(folder, reports, pyodide)
    base = write_pyodide(folder, pyodide)
    with TemporaryDirectory() as fetched_core:
        core = Path(fetched_core) if "://" in base else folder / base
        if "://" in base:
            copy_core(core, Path())
        archive, snapshot = prepared(python_archive(), core)
        code = hashlib.sha256((core / "pyodide.asm.wasm").read_bytes()).hexdigest()
    (folder / ARCHIVE).write_bytes(archive)
    (folder / SNAPSHOT).write_bytes(snapshot)
    config = {"engine": "pyodide", "pyodide": base, "packages": NATIVE, "archive": ARCHIVE}
    config |= {"snapshot": SNAPSHOT if snapshot else "", "wasm": code if "://" in base else ""}
    _write_json(folder / "config.json", config)
    (folder / "licences.txt").write_text(licences(base), "utf-8")
    text = Template((HERE / "service.js").read_text("utf-8"))
    found = digests(folder)
    name = hashlib.sha256(json.dumps(found).encode()).hexdigest()[:16]
    words = {"build": f"tpucc-{name}", "pyodide": base if "://" in base else "", "first": json.dumps(first_files(folder))}
    words["digests"] = json.dumps(found)
    (folder / "service.js").write_text(text.substitute(words), "utf-8")


def write_page(folder: Path, reports: Iterable[str] = (), pyodide: str = "") -> None:
    """Writes all but Python: what the local server needs. Besides its own host the page may load from Pyodide's. Raises `BuildError`."""
    folder.mkdir(parents=True, exist_ok=True)
    imports = editor_modules(folder / "lib")
    for name in (*SCRIPTS, *SHARED):
        shutil.copyfile((WATCH if name in SHARED else HERE) / name, folder / name)
    (folder / "icon.svg").write_bytes(ICON_PICTURE)
    page = Template((HERE / "index.html").read_text("utf-8"))
    (folder / "index.html").write_text(
        page.substitute(head=head("tpucc playground", imports), loads=f" {pyodide.rstrip('/')}/" if "://" in pyodide else ""), "utf-8"
    )
    _write_json(folder / "offers.json", offers(folder, set(reports)))
    (folder / "licences.txt").write_text(licences(""), "utf-8")


def editor_modules(folder: Path) -> dict[str, str]:
    """Writes CodeMirror's modules with their licences into a folder of the page; returns the page's import map."""
    files, imports = _modules()
    for name, content in files.items():
        _write(folder / name, content)
    return {word: f"./lib/{name}" for word, name in imports.items()}


def write_editor(archive: Path) -> None:
    """Writes CodeMirror's modules with their licences into the archive that `tpucc watch` serves them from."""
    files, imports = _modules()
    texts = files | {IMPORTS: json.dumps(imports).encode()}
    archive.write_bytes(_packed(texts))


def _modules() -> tuple[dict[str, bytes], dict[str, str]]:
    """CodeMirror's modules and licences by file, and the file of each module by the name that scripts import it by. Raises `BuildError`."""
    files, imports = {}, {}
    for package in PACKAGES["editor"]:
        with tarfile.open(fileobj=io.BytesIO(fetched(package))) as archive:
            files |= {f"{package['name']}/{name}": _member(archive, name) for name in (package["module"], "LICENSE")}
        word = package["name"] + ("/mode/python" if package["module"].startswith("mode/") else "")
        imports[word] = f"{package['name']}/{package['module']}"
    return files, imports


def fetched(package: Mapping[str, str]) -> bytes:
    """The tarball of an npm package, from the cache or else from the registry. Raises `BuildError`."""
    name, version = package["name"], package["version"]
    file = f"{name.rpartition('/')[2]}-{version}.tgz"
    kept = CACHE / name / file
    if kept.is_file():
        return _checked(package, kept.read_bytes())
    try:
        with urllib.request.urlopen(f"{REGISTRY}/{name}/-/{file}", timeout=60) as answer:
            content = _checked(package, answer.read())
    except OSError as error:
        raise UnreachableError(f"can't fetch {name} {version} from {REGISTRY}: {error}; a build needs the network once") from None
    beside = kept.with_name(f"{file}.{os.getpid()}")
    _write(beside, content)
    beside.replace(kept)  # in one step: another build may read it
    return content


def _checked(package: Mapping[str, str], content: bytes) -> bytes:
    """The content, if it has the SHA-512 of packages.json. Raises `BuildError`."""
    found = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    if found != package["integrity"]:
        raise BuildError(f"{package['name']} {package['version']} is not what packages.json says: its SHA-512 is {found}")
    return content


def write_pyodide(folder: Path, given: str) -> str:
    """Copies Pyodide from a folder beside the page, and returns its address for the page. A folder may have the packages alone: then the
    rest is that of the npm package. Raises `BuildError` where one is missing."""
    if "://" in given:
        return given.rstrip("/") + "/"
    copy_core(folder / "pyodide", Path(given))
    known = json.loads((folder / "pyodide" / LOCK).read_text("utf-8"))["packages"]
    for name in (known[package]["file_name"] for package in NATIVE):
        if not (Path(given) / name).is_file():
            raise BuildError(f"{given} has no {name}")
        _write(folder / "pyodide" / name, (Path(given) / name).read_bytes())
    return "pyodide/"


def copy_core(folder: Path, given: Path) -> None:
    """Writes the interpreter and the standard library, from `given` if they are there, else from the npm package."""
    if (given / LOCK).is_file():
        for name in CORE:
            _write(folder / name, (given / name).read_bytes())
        return
    with tarfile.open(fileobj=io.BytesIO(fetched(PACKAGES["pyodide"]))) as archive:
        for name in CORE:
            _write(folder / name, _member(archive, name))


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    member = archive.extractfile(f"package/{name}")
    assert member is not None
    return member.read()


def python_archive() -> bytes:
    """tpucc, its programs, and the pure packages, as they lie in a folder of packages: the same bytes for the same files."""
    files = dict(_tree(Path(tpucc.__file__).parent, "tpucc")) | dict(_tree(programs.folder(), "tpucc/programs"))
    for name in PURE:
        for path in distribution(name).files or ():
            if "__pycache__" not in path.parts and not path.parts[0].startswith(".."):
                files[str(path)] = Path(str(path.locate())).read_bytes()
    return _packed(files)


def _packed(files: Mapping[str, bytes]) -> bytes:
    """An archive: the same bytes for the same files."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _tree(folder: Path, name: str) -> Iterator[tuple[str, bytes]]:
    left_out = {"__pycache__", "paper" if name.endswith("programs") else ""}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        needed = path.is_file() and not left_out & set(parts) and path.suffix != ".table" and path != EDITOR
        if needed and not path.stem.endswith(("_train", "_test")):
            yield str(PurePosixPath(name, *parts)), path.read_bytes()


def prepared(archive: bytes, core: Path) -> tuple[bytes, bytes]:
    """The archive with its modules compiled, and the parser's table, by Pyodide's own Python in Node; and the memory of a Python that has
    started and imported what it can without packages for WebAssembly, compressed.

    Without Node the archive stays as it is, there is no memory, and the page does both itself, at each visit. Raises `BuildError` when
    Node fails.
    """
    if shutil.which("node") is None:
        print("playground: there is no Node, so the page starts Python and compiles its modules itself, at each visit", file=sys.stderr)
        return archive, b""
    made = _in_node("prepare.mjs", core, archive, *early_modules())
    memory, files = made[8:][: (size := int.from_bytes(made[:8], "big"))], made[8 + size :]
    with zipfile.ZipFile(io.BytesIO(files)) as compiled_files:
        whole = _packed({name: compiled_files.read(name) for name in compiled_files.namelist()})
    return whole, gzip.compress(memory, 7, mtime=0)  # level 9 takes five times as long for a hundredth


def _in_node(script: str, core: Path, given: bytes, *arguments: str) -> bytes:
    with TemporaryFile() as told:  # through a pipe the end of what Node says of an error is lost behind Pyodide's one long line
        done = subprocess.run(
            ["node", str(HERE / script), str(core.resolve()), *arguments], input=given, stdout=subprocess.PIPE, stderr=told, check=False
        )
        told.seek(0)
        lines = told.read().decode(errors="replace").splitlines()
    if done.returncode:
        raise BuildError("\n".join([f"Node can't run {script}:", *(line[:200] for line in lines if line.strip())]))
    return done.stdout


def early_modules() -> list[str]:
    """The modules of the standard library and of the pure packages that the playground's work imports."""
    command = [sys.executable, "-c", "import sys, tpucc.playground.engine; print(*sys.modules)"]
    names = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    return [name for name in names if name.partition(".")[0] in {*sys.stdlib_module_names, *PURE} - {"__main__"}]


def offers(folder: Path, reports: set[str]) -> dict[str, Any]:
    """What the page offers: programs with their reports, targets, puzzles, examples of passes and stages, and the language's words."""
    targets = [name for name in target_names() if not load_target(name).obstacle]
    return {
        "version": tpucc.__version__,
        "words": language(),
        "programs": [_program(example, folder, reports) for example in programs.examples().values()],
        "targets": sorted(targets, key=lambda name: name != "tpu_v1"),
        "puzzles": [
            {
                "name": each.number,
                "title": each.title,
                "task": each.paragraphs,
                "memories": each.memories,
                "text": f"; {each.title}\n\n{each.text}",
            }
            for each in puzzles(Term(""))
        ],
        "machine": machine(),
        "examples": [
            {"name": "a pass", "stage": "", "text": (HERE / "examples" / "pass.py").read_text("utf-8")},
            {"name": "the stage allocate", "stage": "allocate", "text": (HERE.parent / "stages/first_fit.py").read_text("utf-8")},
            {"name": "the stage lower_fc", "stage": "lower_fc", "text": (HERE.parent / "stages/plain_fc.py").read_text("utf-8")},
        ],
    }


def machine() -> list[str | list[list[str]]]:
    """What the handout of lab 0 says of the machine: paragraphs, and tables by row and cell, of which the first row has the heads."""
    text = find(0).material("handout.md", Term("")).partition("## The machine\n")[2].partition("\n## ")[0]
    parts = [part.splitlines() for part in text.strip().split("\n\n")]
    return [_table(lines) if lines[0].startswith("|") else " ".join(lines) for lines in parts]


def _table(lines: list[str]) -> list[list[str]]:
    """The cells of a table; a bar in code separates none."""
    rows = [re.findall(r"((?:`[^`]*`|[^|`])+)\|", line.removeprefix("|")) for line in lines if not line.startswith("|---")]
    return [[cell.strip() for cell in row] for row in rows]


def _program(example: programs.Example, folder: Path, reports: set[str]) -> dict[str, str]:
    """A program, with its report if it is asked for."""
    source, name = example.source.read_text("utf-8"), example.source.stem
    found = {"name": name, "source": source, "summary": "", "report": ""}
    if example.name in SLOW or (reports and example.name not in reports):
        return found
    made = compiled(Model(source, f"{name}.tpu"))
    _write(folder / "reports" / f"{name}.html", made.report.encode())
    return found | {"summary": made.summary, "report": f"reports/{name}.html"}


def first_files(folder: Path) -> list[str]:
    """What a visit loads before the service worker is there: the page without Python, and the report of the first program."""
    offered = json.loads((folder / "offers.json").read_text("utf-8"))["programs"]
    reports = [each["report"] for each in offered if each["report"]][:1]
    own = [path.name for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (ARCHIVE, SNAPSHOT, "service.js")]
    modules = [str(path.relative_to(folder)) for path in sorted((folder / "lib").rglob("*.js"))]
    return ["./", *own, *modules, *reports]


def licences(base: str) -> str:
    """The names, versions and licences of what the page is made of, and where it is from."""
    rows = [f"{each['name']} {each['version']}, {each['licence']}: {REGISTRY}/{each['name']}" for each in PACKAGES["editor"]]
    rows += [f"{name} {distribution(name).version}, {_licence(name)}: https://pypi.org/project/{name}" for name in PURE]
    rows += (
        []
        if not base
        else [f"pyodide {PACKAGES['pyodide']['version']}, {PACKAGES['pyodide']['licence']}, with Python, numpy and msgspec: {base}"]
    )
    return "\n".join([f"tpucc {tpucc.__version__}, Apache-2.0", *rows, ""])


def _licence(name: str) -> str:
    found = distribution(name).metadata
    return next((found[field] for field in ("License-Expression", "License") if field in found), "see its metadata")


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of the page, by its path from the page."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "service.js"]
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
