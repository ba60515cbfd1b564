"""The summaries that compile and run print: 80 columns, plain text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tpucc.compilation import Compilation, Snapshot
from tpucc.diagnostics import counted, printable
from tpucc.explain.layer_error import decibels, unmeasured
from tpucc.explain.quantities import number, size
from tpucc.explain.tables import bottleneck_words, end_to_end_words, explanations, speed, stream_words, table, wrapped
from tpucc.explain.timed import Timed
from tpucc.isa.program import Program
from tpucc.sim.durations import duration
from tpucc.stage_names import BACK_STAGES, FRONT_STAGES


def compile_text(compilation: Compilation, runtime: Timed, files: Sequence[Path], drawing: float, chart: str = "") -> str:
    """The output of compile: the stages with their times, the program's numbers, the bottleneck, the `chart` if there is one, and the page
    to open, or without a page the `files` that were written. `drawing` is how many seconds the page took to draw; 0: it has no row."""
    parts = [_stages(compilation, drawing), _numbers(runtime), *([chart] if chart else [])]
    page = next((str(path) for path in files if path.name == "report.html"), None)
    if page:
        parts.append(f"open {printable(page)}")
    elif files:
        parts.append(f"wrote {', '.join(printable(str(path)) for path in files)}")
    return "\n\n".join(parts)


def compile_summary(compilation: Compilation, runtime: Timed, files: Sequence[Path]) -> dict[str, Any]:
    """The output of compile with --json: the entries of `stats.json`, the stages' times in seconds, the files and the warnings."""
    times = {f"{s.number:02} {s.stage}": s.seconds for s in compilation.snapshots}
    return {**runtime.stats, "stages": times, "files": [printable(str(path)) for path in files], "warnings": compilation.warnings}


def run_text(summary: Mapping[str, Any]) -> str:
    """The output of run: the inputs that it used, the outputs, the accuracy, and how the check went."""
    outputs = ", ".join(f"{printable(name)}: {kind}" for name, kind in summary["outputs"].items())
    lines = [
        f"{printable(summary['model'])}: ran on {printable(summary['inputs'])}; "
        f"one batch takes {duration(summary['end_to_end']['seconds'])} end to end, {summary['cycles']:,} cycles of that on the device",
        f"outputs: {outputs}",
        *_accuracy(summary.get("accuracy")),
        *_regression(summary.get("regression")),
        *_check(summary.get("check")),
    ]
    return "\n".join(wrapped(line, "  ") for line in lines)


def _accuracy(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    rows = counted(found["rows"], "row")
    shares = ", ".join(f"{name} {found[name]:.2%}" for name in ("float32", "int8", "int16") if name in found)
    return [f"accuracy on {rows} of {printable(found['inputs'])}: {shares}"]


def _regression(found: Mapping[str, Any] | None) -> list[str]:
    if found is None:
        return []
    fits = [f"{name} RMSE {found[name]['rmse']:.4g}, R² {found[name]['r2']:.4f}" for name in ("float32", "int8", "int16") if name in found]
    return [f"errors on {counted(found['rows'], 'row')} of {printable(found['inputs'])}: {'; '.join(fits)}"]


def _check(check: Mapping[str, Any] | None) -> list[str]:
    if check is None:
        return []
    if not check["integer"]:
        return ["check: nothing ran on the device"]
    elements = sum(c["elements"] for c in check["integer"].values())
    verdict = "NOT EQUAL" if any(c["unequal"] for c in check["integer"].values()) else "equal"
    padding = ", those of the padding included" if check["padded"] else ""
    lines = [f"check: {verdict} to {check['against']} ({counted(elements, 'element')}{padding})"]
    for name, s in check.get("float", {}).items():
        ratio = decibels(s["snr_db"]) if math.isinf(s["snr_db"]) else f"signal to noise {decibels(s['snr_db'])}"
        if why := unmeasured(s["snr_db"], s["is_constant"]):
            ratio = f"no signal to noise, as it is {why}"
        lines.append(f"against float32, {printable(name)}: largest error {s['largest']:.3g}, mean {s['mean']:.3g}, {ratio}")
    return lines


def _stages(compilation: Compilation, drawing: float) -> str:
    """A row for each stage that is no pass, for each pass of the user's, and for each other pass that changed something. Passes of tpucc's
    that found nothing to do share a row below all passes."""
    shown = {*FRONT_STAGES, *BACK_STAGES, *(step.name for step in compilation.options.passes)}
    idle = [s for s in compilation.snapshots if not s.changed and s.stage not in shown]
    rows = [(s.stage, _outcome(s), _milliseconds(s)) for s in compilation.snapshots if s.changed or s.stage in shown]
    if idle:
        place = next((index for index, row in enumerate(rows) if row[0] in BACK_STAGES), len(rows))
        rows.insert(place, (counted(len(idle), "other pass", "other passes"), "no change", _milliseconds(*idle)))
    if drawing:
        rows.append(("draw", "", f"{1000 * drawing:,.1f}"))
    return table(("stage", "result", "ms"), rows, left=2)


def _milliseconds(*snapshots: Snapshot) -> str:
    """The time of these stages together."""
    return f"{1000 * sum(s.seconds for s in snapshots):,.1f}"


def _outcome(snapshot: Snapshot) -> str:
    """What a stage has made, counted; `no change` of a pass that changed nothing."""
    from tpucc.diagnostics import Source
    from tpucc.ir.graph import Graph
    from tpucc.lowering.tileprogram import TileProgram

    value = snapshot.value
    if snapshot.stage == "verify":
        return "ten groups of rules hold"
    if isinstance(value, Source):
        return counted(value.text.count("\n") + (not value.text.endswith("\n")), "line")
    if isinstance(value, Graph):
        return counted(len(value), "node") if snapshot.changed else "no change"
    if isinstance(value, TileProgram):
        return f"{counted(len(value.tiles), 'weight tile')}, {counted(len(value.buffers), 'buffer')}"
    return counted(len(value.instructions), "instruction")


def _cores(runtime: Timed) -> list[tuple[str, str]]:
    """A row for programs of several cores: what each of them has. No row for one core."""
    cores = runtime.program.cores
    if cores == 1:
        return []
    batch = next(iter(runtime.inputs.values())).shape[0]
    return [("each core", f"{batch // cores:,} of {counted(batch, 'item')}, all weights, a share of the host link")]


def _host_steps(program: Program) -> str:
    """` and 2 host steps`, for which the tables of layers have rows, too; empty where the host computes none."""
    return f" and {counted(len(program.host_steps), 'host step')}" if program.host_steps else ""


def _products(stats: Mapping[str, Any]) -> str:
    """How many multiply-accumulates the device computes, and how many more the host."""
    more = f", and {stats['host_macs']:,} more by the host" if stats["host_macs"] else ""
    return f"{stats['macs']:,} multiply-accumulates{more}"


def _tiles(stats: Mapping[str, Any], tile_bytes: int) -> str:
    """How many tiles hold weights, and how many hold computed values, which the host writes while the program runs; zeros are left out."""
    written = stats["written_tiles"]
    kinds = ((stats["tiles"] - written, ""), (written, " that the host writes"))
    parts = [kind for kind in kinds if kind[0]] or kinds[:1]
    return "; ".join(f"{counted(count, 'tile')}{whose}, {size(count * tile_bytes)}" for count, whose in parts)


def _numbers(runtime: Timed) -> str:
    program, stats = runtime.program, runtime.stats
    target = program.target
    peak, bound, whole = stats["ub_peak_bytes"], stats["ub_lower_bound_bytes"], target.unified_buffer_rows * target.mxu
    rows = [
        ("model", f"{printable(program.name)} on {program.machine_title}"),
        ("end to end", end_to_end_words(stats)),
        *_cores(runtime),
        ("layers", f"{program.device_layers:,}{_host_steps(program)}, with {_products(stats)}"),
        ("weights", _tiles(stats, target.tile_bytes)),
        ("instructions", f"{stats['instructions']:,}"),
        ("unified buffer", f"peak {size(peak)} of {size(whole)}, lower bound {size(bound)}"),
        ("device", f"{stats['cycles']:,} cycles, {duration(stats['seconds'])} at {number(target.clock_hz / 1e6)} MHz, {speed(stats)}"),
        ("bottleneck", bottleneck_words(stats)),
        *([("in a stream", stream_words(stats))] if stats["cycles"] else []),
    ]
    text = "\n".join(wrapped(f"{label:<15} {value}", " " * 16) for label, value in rows)
    return "\n\n".join([text, *explanations(stats)])
