"""The model that an edited text goes on from, read from its file."""

from __future__ import annotations

from pathlib import Path

from tpucc.interop.sources import read_source
from tpucc.options import Options
from tpucc.runtime.resume import Base, base_of
from tpucc.runtime.runtime import Runtime


def base_at(path: Path, options: Options) -> Base:
    """The model at `path`, a program (.tpub) or a source, which is compiled with these options. Raises what reading and compiling raise."""
    if path.suffix == ".tpub":
        return Base(Runtime.load(path).program)
    return base_of(read_source(path, options.params), path.parent, options)
