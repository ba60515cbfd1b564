"""The files that a compile or a training reads: none of its outputs may take the place of one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from tpucc.diagnostics import Error
from tpucc.interop.sources import files_of
from tpucc.output_files import require_apart

TEXTS = (".tpu", ".py", ".toml", ".asm", ".npz")
"""Files of a folder that is read, such as a lab's; and texts that name a file."""
NAMED = ("weights", "calibration", "examples")
"""The keywords by which a source names files."""


def held_out_file(path: Path) -> Path:
    """Where the labelled rows of a source are looked for: `STEM_test.npz` beside it."""
    return path.with_name(f"{path.stem}_test.npz")


def require_kept(outputs: Iterable[Path], read: Iterable[Path], named: Collection[str] = NAMED) -> None:
    """Raises `UsageError` E0505 where a file that is to be written is another of `outputs`, is one of `read`, or is read with one of them:
    a file in a folder, the labelled rows beside a source, what the source names by the keywords `named`."""
    require_apart(list(outputs), _all(read, named))


def _all(read: Iterable[Path], named: Collection[str]) -> Iterator[Path]:
    for path in read:
        yield path
        if path.is_dir():
            yield from (each for each in path.iterdir() if each.suffix in TEXTS)
        if path.suffix == ".tpu":
            yield held_out_file(path)
            with suppress(Error):  # whoever reads the source says what is wrong with it
                yield from files_of(path, named)


def paths_in(value: Any) -> Iterator[Path]:
    """The paths in an argument; a text may name a file, too: a target, a stage's file."""
    match value:
        case Path():
            yield value
        case str() if value.endswith(TEXTS):
            yield Path(value)
        case tuple() | list():
            for each in value:
                yield from paths_in(each)
        case dict():
            yield from paths_in(tuple(value.values()))


def files_asked(asked: Mapping[str, Any]) -> Iterator[Path]:
    """The files among the keywords of `tpucc.compile`, `tpucc.sweep` or `tpucc.train`."""
    for name, value in asked.items():
        if name in ("weights", "calibration", "examples", "held_out") and not isinstance(value, Mapping | None):
            yield Path(value)
        elif name in ("target", "passes", "stages"):
            yield from paths_in(value)
