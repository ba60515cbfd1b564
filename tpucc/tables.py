"""Tables for the terminal, 80 columns wide at most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tpucc.diagnostics import printable
from tpucc.runtime import Runtime

WIDTH = 80
MOST_ROWS = 40
BREAKDOWN = (
    ("array_active", "array active"),
    ("useful_macs", "  useful MACs, of peak"),
    ("unused_macs", "  unused MACs, of peak"),
    ("weight_stall", "weight stall"),
    ("weight_shift", "weight shift"),
    ("non_matrix", "non-matrix"),
    ("raw_stall", "  of it waiting for data"),
    ("input_stall", "  of it waiting for the host"),
)
"""The rows of the paper's Table 3 (Jouppi et al., ISCA 2017), in its order; unindented rows add up to 100 %."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Columns under their heads, the first `left` flush left, the others flush right; over-long first cells are cut."""
    cells = [list(map(printable, head)), *(list(map(printable, row)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    widths[0] = max(8, min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(head) - 1)))
    return "\n".join(
        "  ".join(_cell(cell, width, i < left) for i, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip() for row in cells
    )


def timeline_table(runtime: Runtime) -> str:
    """Where the cycles go: the model's numbers, Table 3's rows, and a row a layer."""
    stats = runtime.stats
    head = (
        f"{printable(stats['model'])} on {stats['target']}: {stats['cycles']:,} cycles, {microseconds(stats['seconds'])}, "
        f"{stats['tops']:.2f} TOPS, {100 * stats['utilization']:.1f} % of peak"
    )
    return "\n\n".join([head, breakdown_table(stats), layer_table(stats), f"{stats['bottleneck']} bound: {stats['explanation']}"])


def breakdown_table(stats: dict[str, Any]) -> str:
    return table(("cycles", "%"), [(label, f"{stats['breakdown'][key]:.1f}") for key, label in BREAKDOWN])


def layer_table(stats: dict[str, Any]) -> str:
    """One row a layer; past `MOST_ROWS`, those with the most cycles."""
    layers: list[dict[str, Any]] = stats["layers"]
    shown = layers
    if len(layers) > MOST_ROWS:
        largest = sorted(range(len(layers)), key=lambda i: (-layers[i]["cycles"], i))[:MOST_ROWS]
        shown = [layers[i] for i in sorted(largest)]
    text = table(("layer", "kind", "line", "cycles", "tiles", "TOPS", "active", "stall", "shift", "other"), map(_layer_row, shown))
    rest = len(layers) - len(shown)
    return f"{text}\n({rest:,} more layers with fewer cycles)" if rest else text


def memory_table(runtime: Runtime) -> str:
    """Who lives in the unified buffer: rows, and the instructions from the first write to the last read."""
    program = runtime.program
    head = (
        f"unified buffer: peak {program.peak_rows:,} of {program.target.unified_buffer_rows:,} rows, "
        f"lower bound {program.lower_bound_rows:,} rows"
    )
    rows = [(r.name, f"{r.start:,}", f"{r.rows:,}", f"{r.first:,}", f"{r.last:,}") for r in program.residents]
    return f"{head}\n\n{table(('buffer', 'start', 'rows', 'from', 'to'), rows)}"


def microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:,.1f} µs" if seconds < 0.1 else f"{seconds:,.3f} s"


def size(count: float) -> str:
    """Bytes with a unit: `96.0 KiB`."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}" if unit == "bytes" else f"{count:,.1f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def _layer_row(layer: dict[str, Any]) -> tuple[str, ...]:
    b = layer["breakdown"]
    shares = (f"{b[key]:.1f}" for key in ("array_active", "weight_stall", "weight_shift", "non_matrix"))
    return (
        layer["name"],
        layer["kind"],
        str(layer["line"]),
        f"{layer['cycles']:,}",
        f"{layer['tiles']:,}",
        f"{layer['tops']:.2f}",
        *shares,
    )


def _cell(text: str, width: int, left: bool) -> str:
    text = text if len(text) <= width else text[: width - 1] + "…"
    return text.ljust(width) if left else text.rjust(width)
