"""Where accuracy is lost: each layer's signal-to-quantisation-noise ratio, from the input to the output."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence

from tpucc.diagnostics import counted
from tpucc.explain.layer_error import LayerError, alone, as_it_runs, unmeasured
from tpucc.explain.names import shortened, shown, whole
from tpucc.explain.quantities import number
from tpucc.prose import percent
from tpucc.see.charts.chart import WIDTH, Scale, foot_axis
from tpucc.see.heading import EDGE, heading
from tpucc.see.palette import Kind, in_order, ink_line, kind_of_layer, solid_paint
from tpucc.see.svg import NOTHING, Markup, joined, label, line, picture, tag, title
from tpucc.see.text import SMALL, shortened_to

LEFT, RIGHT = 236.0, 280.0
"""Room for the names, and for the numbers behind the bars."""
ROW, BAR = 20.0, 11.0
MOST = 54
"""Layers that the picture has room for."""
NAME = 24
"""Characters of a name in a headline."""
KEY = "error"
MARKS = "A bar is the signal-to-noise ratio of a layer as it runs: short is bad, and 6 dB are a bit. A ring is that of the layer alone, "
ALONE = "fed with exact inputs: from the ring to the bar's end is what the layers before it cost."
OUTPUTS = "What each layer costs the outputs: tpucc profile --error."


def error_svg(name: str, errors: Sequence[LayerError]) -> str:
    """A row for each layer, in the order of the program; of many layers those with the lowest ratios."""
    drawn = worst(errors, MOST)
    about = headline(name, errors)
    head = heading(about, reading(errors), in_order(map(kind_of, drawn)), most=WIDTH - 2 * EDGE, solid=True)
    note = lowest(errors, drawn)
    top = EDGE + head.height + 18 + (20 if note else 0)
    bottom = top + ROW * len(drawn)
    scale = _scale(drawn)
    names = shortened_to([error.name for error in drawn], SMALL, LEFT - EDGE - 76)
    rows = joined(_row(error, name, scale, top + ROW * place) for place, (error, name) in enumerate(zip(drawn, names, strict=True)))
    words = label(note, EDGE, top - 24, SMALL, "soft") if note else NOTHING
    return picture(KEY, about, max(WIDTH, head.width + 2 * EDGE), bottom + 46, head.markup, words, _grid(scale, top, bottom), rows)


def headline(name: str, errors: Sequence[LayerError]) -> str:
    """What the last layer keeps, and the noisiest layers: with exact inputs, and as it runs."""
    end = errors[-1]
    kept = f"the last layer keeps {as_it_runs(end)}"
    if why := unmeasured(end.sqnr, end.constant):
        kept = f"the last layer has no signal to noise: it is {why}"
    elif math.isinf(end.sqnr):
        kept = "the last layer loses nothing" if end.sqnr > 0 else "the last layer keeps only noise"
    return f"{name}: {kept}. {_noisiest(errors)}{saturation(errors)}."


def _noisiest(errors: Sequence[LayerError]) -> str:
    """The layers with the lowest ratios by both measures, which may be one; nothing where all are exact alone."""
    first, running = min(errors, key=lambda error: error.own_sqnr), min(errors, key=lambda error: error.sqnr)
    if first.own_sqnr == math.inf:
        return ""
    name, ratio = brief(first, errors), alone(first)
    if first is running:
        return f"{name} is the noisiest layer ({ratio} even with exact inputs). "
    return f"{name} is the noisiest layer with exact inputs ({ratio}), {brief(running, errors)} as it runs ({as_it_runs(running)}). "


def brief(error: LayerError, errors: Sequence[LayerError]) -> str:
    """The name of one of the layers in a title, shortened so that no other is called so."""
    names = [*dict.fromkeys(each.name for each in errors)]
    return shortened([*map(whole, names)], NAME)[names.index(error.name)]


def reading(errors: Sequence[LayerError]) -> str:
    """What bars and rings are, which rows they were measured on, and where the losses of the outputs are."""
    return f"{MARKS}{ALONE} {measured_on(errors)} {OUTPUTS}"


def measured_on(errors: Sequence[LayerError]) -> str:
    """A sentence about the rows of calibration inputs that the errors were measured on."""
    return f"Measured on {counted(errors[-1].rows, 'row')} of the calibration inputs."


def saturation(errors: Sequence[LayerError]) -> str:
    """A sentence without its full stop: how many layers have values beyond their integers."""
    beyond = [error for error in errors if error.saturated]
    if not beyond:
        return "Nothing saturates"
    most = max(beyond, key=lambda error: error.saturated)
    where = f"{percent(most.saturated, 1)} of {brief(most, errors)}"
    return f"{where} saturates" if len(beyond) == 1 else f"{len(beyond):,} layers saturate, most of all {where}"


def worst(errors: Sequence[LayerError], most: int) -> list[LayerError]:
    """All of them, or the `most` with the lowest ratios, in the order of the program."""
    chosen = heapq.nsmallest(most, range(len(errors)), key=lambda place: (errors[place].sqnr, place))
    return [errors[place] for place in sorted(chosen)]


def kind_of(error: LayerError) -> Kind:
    """The colour of a layer, or of the boundary where a value becomes integers."""
    return Kind.BOUNDARY if error.kind == "quantize" else kind_of_layer(error.kind, error.multiplies)


def facts(error: LayerError) -> str:
    """The text that a viewer shows when the pointer rests on a layer."""
    held = f"scale {number(error.scale)}, zero point {error.zero_point:,}"
    ends = f"integers {span(error.limits)}, values {span(error.seen)}"
    size = f"error {error.mean_steps:.2f} steps in the mean, {error.largest_steps:.1f} at most"
    beyond = f"{percent(error.below, 1)} below the range, {percent(error.above, 1)} above"
    noise = f"{as_it_runs(error)}, alone {alone(error)}"
    return f"{shown(error.name)} · {error.kind}\n{held}\n{ends}\n{size}\n{beyond}\n{noise}\n{counted(error.values, 'value')}"


def span(ends: tuple[float, float]) -> str:
    """`-1.25…3`."""
    return "…".join(signed(float(f"{end:.4g}")) for end in ends)


def signed(value: float) -> str:
    """A number with a minus sign as wide as a plus."""
    return number(value).replace("-", "−")


def lowest(errors: Sequence[LayerError], drawn: Sequence[LayerError]) -> str:
    """Which values are drawn, those of layers and those that enter the device; empty where all are."""
    return "" if len(drawn) == len(errors) else f"The {len(drawn)} lowest of {len(errors):,} values, in the order of the program."


def _scale(errors: Sequence[LayerError]) -> Scale:
    ratios = [ratio for error in errors for ratio in (error.sqnr, error.own_sqnr) if math.isfinite(ratio)]
    low = min([0.0, *(10.0 * math.floor(ratio / 10) for ratio in ratios)])
    return Scale(low, max([10.0, *ratios]) * 1.04, LEFT, WIDTH - RIGHT)


def _grid(scale: Scale, top: float, bottom: float) -> Markup:
    values = [*([scale.low] if scale.low < 0 else []), *scale.ticks()]
    return foot_axis(scale, bottom, "signal-to-quantisation-noise ratio in dB", values, [*map(signed, values)], top - 6)


def _row(error: LayerError, name: str, scale: Scale, top: float) -> Markup:
    middle = top + ROW / 2
    zero, end, ring = scale(0), _place(error.sqnr, scale), _place(error.own_sqnr, scale)
    bar = tag(
        "rect", attributes=solid_paint(kind_of(error)), x=min(zero, end), y=middle - BAR / 2, width=max(1.0, abs(end - zero)), height=BAR
    )
    between = line(end, middle, ring, middle, "ink", stroke_width=1.5)
    circle = tag("circle", attributes=ink_line("ink"), cx=ring, cy=middle, r=4, stroke_width=1.6)
    words = f"{as_it_runs(error)}, alone {alone(error)}"
    parts = [title(facts(error)), _name(error, name, middle), bar, between, circle, label(words, WIDTH - RIGHT + 12, middle + 4)]
    if error.saturated:
        mark = f"{percent(error.saturated, 1)} saturates"
        parts.append(label(mark, WIDTH - EDGE, middle + 4, SMALL, "alarm", "end", font_weight="bold"))
    return tag("g", *parts)


def _name(error: LayerError, name: str, middle: float) -> Markup:
    line_number = f"line {error.line:,}" if error.line else ""
    place = label(line_number, LEFT - 10, middle + 4, SMALL, "soft", "end")
    return joined([label(name or "…", EDGE, middle + 4), place])


def _place(ratio: float, scale: Scale) -> float:
    return scale(min(max(ratio, scale.low), scale.high))
