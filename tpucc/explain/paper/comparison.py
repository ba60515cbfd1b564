"""The whole comparison, section by section."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tpucc.explain.paper.applications import find_programs, known, measure_file
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
    programs = find_programs(folder)
    yield from map(with_reasons, (machine_section(target), matrix_section(target)))
    base = {}
    for name, path in programs.items():
        progress(path.name)
        base[name] = measure_file(path, target)
    plain = {}
    for name, path in known(programs).items():
        progress(f"{path.name}, -O0")
        plain[name] = measure_file(path, target, level=0)
    yield from map(with_reasons, (table3_section(base), plain_section(plain), stream_section(base)))
    tables = (table7_section(base), table8_section(base), roofline_section(base, target), inferences_section(base))
    yield from map(with_reasons, tables)
    of_designs = speedups(programs, base, target, progress)
    yield from map(with_reasons, (sensitivity_section(of_designs), prime_section(of_designs[PRIME])))
