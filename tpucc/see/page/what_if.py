"""The view What if: numbers of the machine that a reader changes, and the data by which scripts time the program again.

The table has a row for each number that says how fast something is, and what a batch takes if that is twice as fast. Scripts add a slider
to each row, and draw the program before and after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tpucc.explain.critical import DRAINS, LIMITS, SHIFTS, Limit, synchronisations
from tpucc.explain.retiming import SPEEDS, Retimed
from tpucc.explain.summary import Stats, peak_words
from tpucc.explain.timed import Timed
from tpucc.isa.effects import Effects
from tpucc.isa.link import link_bytes
from tpucc.isa.program import Program
from tpucc.prose import percent
from tpucc.see.page.columns import deltas, plain
from tpucc.see.svg import Markup, escaped, joined, table, tag
from tpucc.sim.durations import Edges, duration

RATES = {
    "host_bandwidth": (1e9, "GB/s"),
    "weight_bandwidth": (1e9, "GB/s"),
    "host_elements_per_second": (1e6, "M values/s"),
    "clock_hz": (1e6, "MHz"),
}
"""What a rate is divided by, and its unit then. The other numbers are durations."""
HEADS = ("part of the machine", "if twice as fast", "then limits", "what if")
SAME = (
    "Pale above: as it is. Below: as it would be. The program is the same, timed again. For another machine the compiler might make "
    "another one: tpucc sweep and --set compile it."
)


def what_if_view(runtime: Timed) -> Markup:
    """The table, those numbers first that gain most, between a sentence and a place for the picture."""
    stats, target, found = runtime.stats, runtime.program.target, runtime.faster
    gains = {each.field: each for each in found}
    fields = [field for field in dict.fromkeys([*gains, *SPEEDS]) if getattr(target, field)]
    rows = (_row(stats, field, getattr(target, field), gains.get(field), found) for field in fields)
    answer = tag("p", escaped(_lead(stats, found)), attributes={"aria-live": "polite"}, class_="lead")
    picture = tag("canvas", Markup(" "), attributes={"role": "img", "aria-label": "the units before and after"})
    return joined([answer, tag("div", table(HEADS, rows), class_="scroll"), picture, tag("p", escaped(SAME), class_="soft")])


def _lead(stats: Stats, found: Sequence[Retimed]) -> str:
    now = f"A batch takes {duration(stats['end_to_end']['seconds'])} from inputs to outputs; {peak_words(stats)[0]}."
    if not found:
        return f"{now} None of these numbers makes that less."
    best = found[0]
    return f"{now} With {SPEEDS[best.field].doubled} it takes {duration(best.seconds)}. Then the bottleneck is: {best.bottleneck}."


def _row(stats: Stats, field: str, value: float, gain: Retimed | None, found: Sequence[Retimed]) -> Markup:
    cells = [
        tag("td", escaped(SPEEDS[field].title), tag("small", escaped(number_words(field, value))), title=field),
        tag("td", *(_gained(stats, gain, found[0]) if gain else [escaped("no gain")]), class_="gain"),
        tag("td", escaped(gain.bottleneck if gain else "")),
        tag("td", Markup(" "), class_="slider"),
    ]
    return tag("tr", joined(cells), attributes={"data-field": field})


def _gained(stats: Stats, gain: Retimed, best: Retimed) -> Iterator[Markup]:
    """The time of a batch then, and what it gains as a bar, beside the largest one."""
    whole = stats["end_to_end"]["seconds"]
    part = whole - gain.seconds
    yield tag("i", tag("span", Markup(" "), style=f"width:{100 * part / (whole - best.seconds):.1f}%"))
    yield escaped(f"{duration(gain.seconds)}, {percent(part, whole)} less")


def number_words(field: str, value: float) -> str:
    """`10.7 GB/s`, `1 µs`."""
    if field not in RATES:
        return duration(value)
    factor, unit = RATES[field]
    return f"{float(f'{value / factor:.3g}'):,.12g} {unit}"


def retiming_payload(program: Program, touched: Effects, edges: Edges) -> dict[str, Any]:
    """What `retiming.js` times the program by, besides the instructions that the page has: the machine's numbers, what each unit has to
    do with them, and which unit waits for which at a synchronisation."""
    machine, target = program.machine, program.target
    elements = [*(step.elements for step in program.host_steps), -1]
    indices = program.instructions["index"][touched.interrupts].tolist()
    return {
        "target": {field: getattr(target, field) for field in SPEEDS},
        "rates": RATES,
        "cores": program.cores,
        "edges": list(edges),
        "tile_bytes": target.tile_bytes,
        "places": machine.queue.depth(target) if machine.queue is not None else 0,
        "drains": [unit.drain(target) for unit in machine.units],
        "limits": list(LIMITS),
        "unit_limits": [LIMITS.index(Limit(unit.limit)) if unit.limit else DRAINS for unit in machine.units],
        "drain_limit": DRAINS,
        "shift_limit": SHIFTS,
        "moved": plain(link_bytes(program, touched)[touched.engine == machine.account.supplies]),
        "elements": plain([elements[min(index, len(elements) - 1)] for index in indices]),
        "waits": [[*units, deltas(at)] for units, at in sorted(synchronisations(program, touched).items())],
    }
