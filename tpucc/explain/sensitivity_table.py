"""The table of `tpucc profile --error`: what each layer costs, the costliest first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tpucc.diagnostics import counted, printable
from tpucc.explain.layer_error import alone, as_it_runs, decibels, unmeasured
from tpucc.explain.sensitivity import LayerLoss, Losses
from tpucc.explain.tables import MOST_ROWS, WIDTH, table, wrapped

EXPLAINED = (
    "only it: the signal-to-noise ratio of the outputs, in dB, when only this layer computes with integers, its operands' among them, and "
    "all others compute in float32; the costliest layer stands first. alone: that of the layer's own values, from operands that are exact "
    "but for the rounding to integers. as it runs: with the errors of all layers before."
)
KEEP = " keep: what --keep takes, as in --keep NAME=host, where it isn't the name of the row: the layer of a part, or what reads a value."
KEEP_BY = "keep, where the name of the row isn't what --keep takes: "
SHORTENED = "\n(Some names are shortened; a wider terminal and --json have them in full.)"
UNKNOWN = "–"
SHOWN = 2
"""Names of a row that `--keep` takes; more are in the JSON."""


def losses_table(name: str, found: Losses, inputs: str, integers: str, width: int = WIDTH) -> str:
    """What each layer costs; past `MOST_ROWS` the cheapest are counted. `inputs` says what was measured on."""
    rows = counted(found.rows, "row") if found.rows == found.given else f"{found.rows:,} of {found.given:,} rows"
    kept = f"the outputs keep {decibels(found.output_sqnr)}"
    if why := unmeasured(found.output_sqnr, found.constant):
        kept = f"the outputs have no signal to noise: they are {why}"
    head = f"{printable(name)}: {kept}, on {rows} of {inputs}"
    head += ", evenly spread" if found.rows < found.given else ""
    if found.accuracy is not None and found.float_accuracy is not None:
        head += f"; accuracy {found.float_accuracy:.2%} in float32, {found.accuracy:.2%} in {integers}"
    shown, others = found.layers[:MOST_ROWS], found.layers[MOST_ROWS:]
    judged = any(loss.accuracy is not None for loss in shown)
    heads = ("layer", "kind", "line", "only it", *(("accuracy",) if judged else ()), "alone", "as it runs")
    text, told = _with_keep(heads, [_row(loss, judged, found.constant) for loss in shown], [*map(_keep, shown)], width)
    more = f"\n({counted(len(others), 'more row')} that cost less)" if others else ""
    more += "" if all(printable(loss.error.name) in text for loss in shown) else SHORTENED
    return f"{wrapped(head, '  ')}\n\n{text}{more}\n\n{wrapped(EXPLAINED + told)}"


def losses_json(name: str, found: Losses, inputs: str) -> dict[str, Any]:
    """The same for programs to read. A ratio that isn't finite (no error at all, or constant values) is null."""
    layers = [
        {
            "name": loss.error.name,
            "kind": loss.error.kind,
            "line": loss.error.line,
            "only_snr_db": _finite(loss.output_sqnr),
            "alone_snr_db": _finite(loss.error.own_sqnr),
            "snr_db": _finite(loss.error.sqnr),
            "accuracy": loss.accuracy,
            "keep": loss.keep,
        }
        for loss in found.layers
    ]
    accuracy = {"float32": found.float_accuracy, "quantised": found.accuracy}
    whole = {"rows": found.rows, "rows_given": found.given, "inputs": inputs, "snr_db": _finite(found.output_sqnr), "accuracy": accuracy}
    return {"model": name, **whole, "layers": layers}


def _row(loss: LayerLoss, judged: bool, constant: bool) -> tuple[str, ...]:
    error = loss.error
    accuracy = ("" if loss.accuracy is None else f"{loss.accuracy:.2%}",) if judged else ()
    ratios = (decibels(loss.output_sqnr, constant), alone(error), as_it_runs(error))
    only, own, running = (ratio.removesuffix(" dB") for ratio in ratios)
    return (error.name, error.kind, str(error.line), only, *accuracy, own, running)


def _with_keep(heads: Sequence[str], rows: Sequence[Sequence[str]], keep: Sequence[str], width: int) -> tuple[str, str]:
    """The table, with a column of what `--keep` takes where some row's name isn't it, and what explains the column. Where the column would
    cut names, which `--keep` takes as they are, a sentence below the table says the same."""
    whole = table(heads, rows, width=width)
    if not any(text and text != UNKNOWN for text in keep):
        return whole, ""
    text = table((*heads, "keep"), [(*row, each) for row, each in zip(rows, keep, strict=True)], width=width)
    if all(printable(row[0]) in text for row in rows):
        return text, KEEP
    named = "; ".join(f"{printable(row[0])}: {printable(each)}" for row, each in zip(rows, keep, strict=True) if each)
    return f"{whole}\n\n{wrapped(KEEP_BY + named)}", ""


def _keep(loss: LayerLoss) -> str:
    """What `--keep` takes for the layer, where its own name isn't it."""
    if loss.keep == (loss.error.name,):
        return ""
    more = [f"{len(loss.keep) - SHOWN} more"] if len(loss.keep) > SHOWN else []
    return ", ".join([*loss.keep[:SHOWN], *more]) or UNKNOWN


def _finite(ratio: float) -> float | None:
    return ratio if math.isfinite(ratio) else None
