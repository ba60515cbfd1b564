"""The whole comparison, section by section."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tpucc.explain.paper.applications import Measured, find_programs, known, measure_file
from tpucc.explain.paper.arithmetic import machine_section, matrix_section
from tpucc.explain.paper.figures import Section
from tpucc.explain.paper.reasons import with_reasons
from tpucc.explain.paper.sensitivity import PRIME, Progress, prime_section, sensitivity_section, speedups
from tpucc.explain.paper.tables import (
    inferences_section,
    plain_section,
    roofline_section,
    stream_section,
    table3_section,
    table7_section,
    table8_section,
)
from tpucc.target import Target


def compare(folder: Path, target: Target, progress: Progress = lambda _: None) -> Iterator[Section]:
    """The sections, each when it is ready. The applications are those of the paper's whose sources lie in `folder`.

    `progress` is called with the work in hand. Raises `UsageError` E0532 when there is no source, and the errors of compiling.
    """
    return map(with_reasons, _sections(find_programs(folder), target, progress))


def _sections(programs: Mapping[str, Path], target: Target, progress: Progress) -> Iterator[Section]:
    def measured(programs: Mapping[str, Path], level: int, words: str = "") -> Iterator[tuple[str, Measured]]:
        for name, path in programs.items():
            progress(f"{path.name}{words}")
            yield name, measure_file(path, target, level)

    yield from (machine_section(target), matrix_section(target))
    base = dict(measured(programs, 2))
    plain = dict(measured(known(programs), 0, ", -O0"))
    yield from (table3_section(base), plain_section(plain), stream_section(base))
    yield from (table7_section(base), table8_section(base), roofline_section(base, target), inferences_section(base))
    of_designs = speedups(programs, base, target, progress)
    yield from (sensitivity_section(of_designs), prime_section(of_designs[PRIME]))
