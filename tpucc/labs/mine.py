"""What a student wrote in several labs, together as one compiler.

The compiler calls some of the functions that labs ask for: passes (lab 2), the lowering of products (lab 4), allocation (5), order (6) and
waits (7). Each stands in the place of tpucc's own. The others' labs check their functions alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tpucc import api
from tpucc.api import Executable
from tpucc.back_end import STAGES
from tpucc.diagnostics import Diagnostic, Error, UsageError, counted, printable
from tpucc.files import read_file
from tpucc.guest.files import pass_of_function, stages_of_files
from tpucc.guest.serving import is_python
from tpucc.labs import labs
from tpucc.labs.judging import judged_beside
from tpucc.labs.lab import AS_WRITTEN, Lab
from tpucc.labs.start import place
from tpucc.labs.submissions import FILE
from tpucc.passes.base import Pass
from tpucc.passes.pipeline import PASSES

PASS_OF: Mapping[str, str] = {"fold_constants": "constant-folding", "fuse_bias": "fuse-bias", "fuse_activation": "fuse-activation"}
"""The pass in whose place a function of lab 2 stands."""
SHOWN = 2
"""Diagnostics of a function that are told: what failed, and the first thing that is wrong."""
_BUILT_IN = {step.name: step for step in PASSES}


@dataclass(frozen=True)
class Part:
    """A function of a lab that the compiler calls. `file` is the student's, None where there is none; `begun` says whether the function
    differs from the one that the lab begins with."""

    lab: Lab
    function: str
    file: Path | None
    begun: bool

    @property
    def place(self) -> Path:
        """The student's file, where there is one."""
        assert self.file is not None
        return self.file

    @property
    def state(self) -> str:
        """Whose function the compiler calls, and why."""
        if self.file is None:
            return "tpucc's: no file"
        return "yours" if self.begun else "tpucc's: not begun"


@dataclass(frozen=True)
class Trial:
    """A model compiled with some of a student's functions: the program, or what is wrong, as errors are printed."""

    parts: Sequence[Part]
    exe: Executable | None
    problem: str = ""

    @property
    def cycles(self) -> int | None:
        """The program's cycles; None where there is no right one."""
        return None if self.exe is None or self.problem else self.exe.runtime.timeline.makespan

    @property
    def uncalled(self) -> bool:
        """Whether the model has nothing for the functions to do."""
        said = () if self.exe is None else self.exe.notes
        return all(any(note.startswith(f"{part.function} is not called") for note in said) for part in self.parts)


def parts_in(folder: Path) -> tuple[Part, ...]:
    """The functions that the compiler calls, each with the file of a student who works in `folder` or in folders in it. Raises `UsageError`
    E0551 where two files may be a lab's, or where there is none at all."""
    called = {*STAGES, *PASS_OF}
    found = [(lab, _file_of(lab, folder)) for lab in labs() if called.intersection(lab.functions)]
    if all(file is None for _, file in found):
        help = (f"it is a lab's folder, or one that has labs' folders: tpucc lab start N makes {found[0][0].name} and so on",)
        raise UsageError(Diagnostic("E0551", f"{printable(str(folder))} has no file of a lab whose functions a compiler calls", help=help))
    return tuple(Part(lab, name, file, _begun(lab, name, file)) for lab, file in found for name in lab.functions if name in called)


def _file_of(lab: Lab, folder: Path) -> Path | None:
    folders = (folder, *(path for path in folder.glob("*") if path.is_dir()))
    names = (lab.program, lab.file) if lab.program else (lab.file,)
    files = (next((place / name for name in names if (place / name).is_file()), None) for place in folders)
    candidates = sorted(path for path in files if path is not None and _may_be(lab, path))
    if len(candidates) > 1:
        message = f"{printable(str(candidates[0]))} and {printable(str(candidates[1]))} may both be the file of lab {lab.number}"
        raise UsageError(Diagnostic("E0551", message, help=("name a folder with one folder for each lab",)))
    return candidates[0] if candidates else None


def _may_be(lab: Lab, path: Path) -> bool:
    """Whether the folder of a file is this lab's, or says of none which it is."""
    return not (path.parent / FILE).is_file() or place(path)[0].number == lab.number


def _begun(lab: Lab, function: str, file: Path | None) -> bool:
    if file is None or not is_python(file.name):
        return file is not None
    term = place(file)[1] if (file.parent / FILE).is_file() else AS_WRITTEN
    text = read_file(file).decode("utf-8", "replace")
    return _function(text, function) not in ("", _function(lab.files(term)[lab.file], function))


def _function(text: str, name: str) -> str:
    """What gives a name of a file its value, without comments and layout: a function mostly. The whole text where it can't be read."""
    try:
        return "".join(ast.dump(each) for each in ast.parse(text).body if name in _bound(each))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module gives a value: functions, assignments, imports."""
    for each in ast.walk(statement) if not isinstance(statement, ast.FunctionDef | ast.ClassDef) else ():
        if isinstance(each, ast.alias):
            yield each.asname or each.name
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store):
            yield each.id
    if isinstance(statement, ast.FunctionDef):
        yield statement.name


def trial(model: Path, parts: Sequence[Part], plain: Executable, seconds: float, *, trust: bool = False) -> Trial:
    """The model compiled with these functions, and judged beside `plain`, tpucc's own program of it."""
    files = {part.function: part.place for part in parts if part.function in STAGES}
    try:
        stages = stages_of_files(files, seconds, trust=trust)
        passes = tuple(_as_pass(part, seconds, trust) for part in parts if part.function in PASS_OF)
        exe = api.compile(model, stages=stages, passes=passes)
    except Error as error:
        return Trial(parts, None, _first_of(error))
    return Trial(parts, exe, printable(judged_beside(exe, plain, seed=0)))


def _first_of(error: Error) -> str:
    """An error with the first thing that was found, and how many more there are."""
    more = len(error.diagnostics) - SHOWN
    said = type(error)(error.diagnostics[:SHOWN], error.source).render()
    return f"{said}\nand {counted(more, 'more finding')} like it" if more > 0 else said


def _as_pass(part: Part, seconds: float, trust: bool) -> Pass:
    return pass_of_function(part.place, part.function, _BUILT_IN[PASS_OF[part.function]], seconds, trust=trust)
