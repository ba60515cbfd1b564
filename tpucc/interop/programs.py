"""The programs that come with tpucc: in a checkout beside the package, in an installed one inside it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tpucc.diagnostics import Diagnostic, UsageError, did_you_mean, listed, printable
from tpucc.language.frame import is_function
from tpucc.language.literals import IDENTIFIER, KEYWORDS

_NUMBER = re.compile(r"^\d+_")
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Example:
    """A program with its data. `name` is without the number of its place in the list, `summary` the comment that its source begins with."""

    name: str
    source: Path
    summary: str

    @property
    def data(self) -> tuple[Path, ...]:
        """Its weights, calibration inputs, held-out set and training examples, as far as it has them: those named after it, and those that
        it names."""
        text = self.source.read_text("utf-8")
        paths = sorted(self.source.parent.glob("*.npz"))
        return tuple(
            path for path in paths if path.name.startswith((f"{self.source.stem}.", f"{self.source.stem}_")) or f'"{path.name}"' in text
        )

    def written_as(self, name: str) -> dict[str, bytes]:
        """Its files under another name, by which its source then calls them."""
        stem = self.source.stem
        text = re.sub(rf"\b{self.model}\(", f"{self.model_in(name)}(", self.source.read_text("utf-8")).replace(f'"{stem}', f'"{name}')
        return {f"{name}.tpu": text.encode()} | {path.name.replace(stem, name, 1): path.read_bytes() for path in self.data}

    @property
    def model(self) -> str:
        """The name of its model."""
        return str(re.findall(r"(?m)^model (\w+)\(", self.source.read_text("utf-8"))[0])

    def model_in(self, name: str) -> str:
        """The model's name in files of this name: the same, or its own where the language or the source uses that otherwise."""
        used = re.findall(r"\w+", re.sub("#.*", "", self.source.read_text("utf-8")))
        return self.model if not IDENTIFIER.fullmatch(name) or name in KEYWORDS or is_function(name) or name in used else name


def folder() -> Path:
    """Where the programs lie."""
    package = Path(__file__).resolve().parents[1]
    installed = package / "programs"
    return installed if installed.is_dir() else package.parent / "programs"


def examples() -> dict[str, Example]:
    """All programs by name, in the order of their numbers, then the gallery; none where only the package's code was installed."""
    paths = (*sorted(folder().glob("*.tpu")), *sorted(folder().glob("gallery/*.tpu")))
    return {example.name: example for path in paths for example in [_example(path)]}


def example(name: str) -> Example:
    """The program of this name, with or without its number and `.tpu`. Raises `UsageError` E0527 when there is none."""
    known = examples()
    wanted = _NUMBER.sub("", name.removesuffix(".tpu"))
    if wanted not in known:
        within = [other for other in known if len(wanted) > 2 and wanted.lower() in other]
        near = f"did you mean {listed(within, 'or')}?" if within else did_you_mean(wanted, known)
        help = near or "tpucc programs lists them"
        said = printable(name) or "by an empty text"
        raise UsageError(Diagnostic("E0527", f"no program that comes with tpucc is named {said}", help=(help,)))
    return known[wanted]


def suggestion(path: Path) -> str:
    """The help for a missing file that has the name of one of the programs; else empty."""
    name = _NUMBER.sub("", path.name.removesuffix(".tpu"))
    return f"tpucc new {name} writes the program of this name, with its data, to the folder {name}" if name in examples() else ""


def _example(path: Path) -> Example:
    first = path.read_text("utf-8").split("\n", 1)[0]
    return Example(_NUMBER.sub("", path.stem), path, first.lstrip("# ").strip())
