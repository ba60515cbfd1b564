"""Tables for the terminal: 80 columns wide, or as wide as their reader's terminal where names need it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeVar

from tpucc.diagnostics import counted, printable
from tpucc.explain.accounting import ROWS, cycles_by_row
from tpucc.explain.counts import WAYS
from tpucc.explain.critical import Limit, path_words
from tpucc.explain.names import first_names, shortened
from tpucc.explain.quantities import rate_text, size
from tpucc.explain.roofs import works_of
from tpucc.explain.summary import by_lines, end_to_end_parts, host_words, layer_cells, machine_of, rows_of_layers, tenths, waiting_cells
from tpucc.explain.timed import Timed
from tpucc.isa.program import HOST
from tpucc.prose import folded, percent
from tpucc.sim.durations import duration, durations
from tpucc.target import number_text

T = TypeVar("T")

WIDTH = 80
USEFUL, UNUSED = "  useful MACs, of peak", "  unused MACs, of peak"
"""The two parts of the row `array active`: the share of the array's cells with weights of the model, and of those without."""
GAP = 2
"""Blanks between two columns of a table."""
MOST_ROWS = 40
"""Layers, or lines, that have a row of their own in a table; all others share one."""
BY_LANES = "(The {} of peak above count products of the activation unit too, the useful MACs do not.)"
HOST_PRICE = "Assumed: what the host takes, host_step_seconds and 1 / host_elements_per_second for each value."
LAYER_HEADS = ("layer", "kind", "line", "cycles", "%", "tiles", "TOPS", "active", "waits", "mostly for")
LINE_HEADS = ("largest layer", "layers", "line", "cycles", "%", "fetches", "active", "waits", "mostly for")
SAME_PROGRAM = "(The same program, timed again: the compiler might make another one for another machine.)"
WHAT_IF_HEADS = ("what if one is twice as good", "end to end", "%", "then limits")
BY_LINE = "\n(tpucc profile --by line adds up the layers of each line of the source.)"
SHORTENED = "\n(Some names are shortened; a wider terminal and stats.json have them in full.)"
EARLY = "Where a layer takes less time than the fetches of its weights, some took place in other layers' time: its speed is over them."
KEPT = "Left out are layers that fetch no tiles, as an earlier layer did or the activation unit computes them."
SCALING_HEADS = ("cores", "items", "cycles", "time", "speed-up", "efficiency", "TOPS", "bottleneck")


def table(head: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1, width: int = WIDTH) -> str:
    """Columns under their heads, the first `left` flush left, the others flush right.

    A table wider than `width` has one blank between columns instead of two. If that isn't enough, its longest first cells are cut, all
    other cells never. Different first cells stay different (see `shortened`): where that takes more room, the table is wider.
    """
    from rich.cells import cell_len, set_cell_size  # imported only when a table is printed: it takes longer than most commands

    cells = [[*map(printable, row)] for row in (head, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    gap = GAP if sum(widths) + GAP * (len(widths) - 1) <= width else 1
    room = max(1, width - sum(widths[1:]) - gap * (len(widths) - 1))
    firsts = [cells[0][0], *shortened([row[0] for row in cells[1:]], room, cell_len, middle=True)]
    widths[0] = max(map(cell_len, firsts))

    def padded(place: int, text: str) -> str:
        return set_cell_size(text, widths[place]) if place < left else " " * (widths[place] - cell_len(text)) + text

    lines = ((" " * gap).join(map(padded, range(len(widths)), (first, *row[1:]))) for first, row in zip(firsts, cells, strict=True))
    return "\n".join(line.rstrip() for line in lines)


def timeline_table(runtime: Timed, width: int = WIDTH, *, by_line: bool = False) -> str:
    """All that `tpucc profile` prints of one batch but its what-if table: the model's numbers, what the matrix unit did, and a table of
    `width` columns with a row for each layer (`by_line`: each line of the source)."""
    stats = runtime.stats
    head = f"{printable(stats['model'])} on {machine_of(stats)}: {duration(stats['end_to_end']['seconds'])} end to end; of it "
    head += f"{stats['cycles']:,} cycles of the device and its link, {duration(stats['seconds'])}, {speed(stats)}"
    head += f"; without {counted(stats['host_macs'], 'multiply-accumulate')} of the host" if stats["host_macs"] else ""
    lanes = "\n" + wrapped(BY_LANES.format(percent(stats["utilization"], 1))) if stats["vector_macs"] else ""
    rows = (line_table if by_line else layer_table)(stats, width)
    texts = [wrapped(head, "  "), end_to_end_table(stats), breakdown_table(stats) + lanes, rows + host_note(stats)]
    texts += explanations(stats)
    if stats["cycles"]:
        texts.append(wrapped(f"critical path, %: {path_words(stats['critical_path'])}", "  "))
        texts.append(wrapped(f"in a stream of batches: {stream_words(stats)}", "  "))
    return "\n\n".join(texts)


def end_to_end_table(stats: Mapping[str, Any]) -> str:
    """The time of a batch from its inputs to its outputs, part by part, and the price of the host's parts, which is an assumption."""
    found = stats["end_to_end"]
    whole = found["seconds"] or 1.0
    rows = [(name, duration(seconds), f"{100 * seconds / whole:.1f}") for name, seconds in end_to_end_parts(stats)]
    rows.append(("in all", duration(found["seconds"]), "100.0" if found["seconds"] else "0.0"))
    rows.append(("each of a stream", duration(found["stream_seconds"]), ""))
    return f"{table(('end to end', 'time', '%'), rows)}\n{wrapped(f'({HOST_PRICE})')}"


def what_if_table(runtime: Timed) -> str:
    """The time of a batch with each number of the machine twice as good, and what limits it then; empty where none helps."""
    found, whole = runtime.faster, runtime.stats["end_to_end"]["seconds"]
    if not found:
        return ""
    rows = [
        (f"{each.field}={number_text(each.value)}", duration(each.seconds), f"{100 * (each.seconds / whole - 1):+.1f}", each.bottleneck)
        for each in found
    ]
    return f"{table(WHAT_IF_HEADS, rows)}\n{wrapped(SAME_PROGRAM)}"


def end_to_end_words(stats: Mapping[str, Any]) -> str:
    """`505 µs a batch: host before 22.8 µs, device and link 468 µs, host after 14 µs (the host's assumed)`."""
    found = stats["end_to_end"]
    parts = (("host before", found["host_before"]), ("device and link", stats["seconds"]), ("host after", found["host_after"]))
    told = ", ".join(f"{name} {duration(seconds)}" for name, seconds in parts if seconds)
    whole = f"{duration(found['seconds'])} a batch"
    return f"{whole}: {told} (the host's assumed)" if told else whole


def bottleneck_words(stats: Mapping[str, Any]) -> str:
    """The bottleneck from end to end, and of the device alone if that is another one: `host work; of the device weight memory`."""
    whole, device = stats["end_to_end"]["bottleneck"], stats["bottleneck"]
    return whole if device in (whole, "nothing") else f"{whole}; of the device {device}"


def explanations(stats: Mapping[str, Any]) -> list[str]:
    """What limits the device and what would help; before it the same from end to end, if that is something else: paragraphs."""
    whole, device = stats["end_to_end"], stats["bottleneck"]
    first = [f"{whole['bottleneck']} bound: {whole['explanation']}."] if whole["bottleneck"] != device and whole["explanation"] else []
    whose = "" if device == "nothing" else f"the device is {device} bound: " if first else f"{device} bound: "
    return [wrapped(text) for text in (*first, f"{whose}{stats['explanation']}.")]


def host_note(stats: Mapping[str, Any]) -> str:
    """A note under a table of cycles: what the host computes before and after, which has no row there. Empty if that is nothing."""
    words = host_words(stats)
    return f"\n{wrapped(f'({words}.)')}" if words else ""


def speed(stats: Mapping[str, Any]) -> str:
    """`25.1 GOPS, under 0.1 % of peak`."""
    return f"{rate_text(1e12 * stats['tops'])}, {percent(stats['utilization'], 1)} of peak"


def stream_words(stats: dict[str, Any]) -> str:
    """The cost of a batch in a stream: `20.5 µs each, host work bound; 3,102 cycles of the device, 4.43 µs, 0.04 TOPS, host link bound`."""
    found, whole = stats["stream"], stats["end_to_end"]
    words = f"{duration(whole['stream_seconds'])} each, {whole['stream_bottleneck']} bound; "
    if not found["fits"]:
        return f"{words}the device as one alone, as there is no room: it needs {size(found['ub_bytes'])} of unified buffer"
    device = f", {found['bottleneck']} bound" if found["bottleneck"] != whole["stream_bottleneck"] else ""
    return f"{words}{found['cycles']:,} cycles of the device, {duration(found['seconds'])}, {rate_text(1e12 * found['tops'])}{device}"


def stream_table(runtime: Timed, batches: int) -> str:
    """So many batches one after the other: one alone, each further one, and all."""
    stats, found = runtime.stats, runtime.stats["stream"]
    clock, macs = runtime.program.target.clock_hz, stats["macs"]

    def row(name: str, count: int, cycles: int) -> tuple[str, ...]:
        tops = 2 * macs * count * clock / max(1, cycles) / 1e12
        share = 100 * tops / stats["peak_tops"]
        return (name, f"{cycles:,}", duration(cycles / clock), f"{tops:.3g}", f"{share:.1f}")

    whole = stream_cycles(stats, batches)
    rows = [
        row("one batch alone", 1, stats["cycles"]),
        row("each further one", 1, found["cycles"]),
        row(counted(batches, "batch", "batches"), batches, whole),
    ]
    columns = [spent_percent(part) for part in (stats, found)]
    causes = [(name, *(f"{column[name]:.1f}" for column in columns)) for name in columns[0] if any(column[name] for column in columns)]
    causes.append(("in all", *(f"{100.0 if part['cycles'] else 0.0:.1f}" for part in (stats, found))))
    head = f"{printable(stats['model'])} on {machine_of(stats)}: a stream of {counted(batches, 'batch', 'batches')}"
    times = table(("", "cycles", "time", "TOPS", "% of peak"), rows)
    shares = table(("cycles, %", "alone", "further"), causes)
    return "\n\n".join([wrapped(head, "  "), times + host_note(stats), shares, wrapped(_why_a_period(runtime))])


def _why_a_period(runtime: Timed) -> str:
    """What makes each further batch of a stream take as long as it does: sentences."""
    end, found = runtime.stats["end_to_end"], runtime.stats["stream"]
    if not found["cycles"]:
        words = "Nothing runs on the device."
    elif found["fits"]:
        computing, link = found["computing_cycles"], found["link_cycles"]
        words = (
            f"Each further batch: {computing:,} cycles of computing; {link:,} of the host link, "
            f"in which the next inputs and the last outputs cross meanwhile. The longer one counts. {found['bottleneck']} bound."
        )
    else:
        room = runtime.program.target.unified_buffer_rows * runtime.program.target.mxu
        words = (
            f"No transfer crosses while another batch computes: that needs {size(found['ub_bytes'])} of unified buffer, and there are "
            f"{size(room)}. So each batch takes as long as one alone."
        )
    if end["host_before"] + end["host_after"]:
        words += (
            f" With the host's work before and after, one batch alone takes {duration(end['seconds'])}, and each further one "
            f"{duration(end['stream_seconds'])}, {end['stream_bottleneck']} bound."
        )
    return words


def stream_cycles(stats: dict[str, Any], batches: int) -> int:
    """The cycles of so many batches: the first takes as long as one alone, each further one the stream's period."""
    return int(stats["cycles"] + (batches - 1) * stats["stream"]["cycles"])


def counts_table(runtime: Timed, width: int = WIDTH) -> str:
    """The cycles counted in four ways, a row a layer of at most `width` columns, and what each way counts."""
    program, counts = runtime.program, runtime.counts
    head = f"{printable(program.name)} on {program.target.name}: the cycles of one batch, counted in four ways"
    own, names = counts["layers"], [_name(layer) for layer in runtime.stats["layers"]]
    named = [{**own[place], "name": names[place]} for place in rows_of_layers(runtime.stats["layers"])]
    layers, others = _largest(named, itemgetter("serial"))
    rows = [(layer["name"], layer["kind"], *(f"{layer[way]:,}" for way in WAYS)) for layer in layers]
    if others:
        rows.append((f"{len(others):,} more", "", *(f"{sum(layer[way] for layer in others):,}" for way in WAYS)))
    rows.append(("in all", "", *(f"{counts[way]:,}" for way in WAYS)))
    parts = counts["serial_parts"]
    ways = (
        "overlapped: five units work at the same time, as the machine does",
        "serial: every instruction alone, one after the other: "
        f"host {parts['host']:,}, weight fetch {parts['fetch']:,}, weight shift {parts['shift']:,}, rows multiplied {parts['rows']:,}, "
        f"fill and drain {parts['pipeline']:,}, activation {parts['activation']:,}",
        "SCALE-Sim: folds × (M + 2R + C - 2) - 1 for each product: shift, rows, fill and drain of each tile, nothing else",
        "OpenTPU: L + 2N for each multiply: rows, fill and drain, nothing else",
    )
    text = table(("layer", "kind", "overlapped", "serial", "SCALE-Sim", "OpenTPU"), rows, left=2, width=width)
    return "\n\n".join([wrapped(head, "  "), text + host_note(runtime.stats), "\n".join(wrapped(way, "  ") for way in ways)])


def breakdown_table(stats: dict[str, Any]) -> str:
    """What the matrix unit's cycles go to, in percent: but for rounding, the rows that aren't indented add up to 100."""
    shown = {name: share for name, share in spent_percent(stats).items() if share}
    note = _rounding([share for name, share in shown.items() if name not in (USEFUL, UNUSED)], "array active and the waits")
    rows = [*((name, f"{share:.1f}") for name, share in shown.items()), ("in all", f"{100.0 if stats['cycles'] else 0.0:.1f}")]
    return table(("cycles", "%"), rows) + note


def spent_percent(stats: Mapping[str, Any]) -> dict[str, float]:
    """What the matrix unit's cycles go to, by the names of the accounting's rows. Rows that aren't indented add up to 100."""
    rows, cells = cycles_by_row(stats), stats["breakdown"]
    shares = {ROWS[limit].name: 100 * cycles / max(1, stats["cycles"]) for limit, cycles in rows.items()}
    active = ROWS[Limit.MATRIX_UNIT].name
    return {active: shares.pop(active), USEFUL: cells["useful_macs"], UNUSED: cells["unused_macs"], **shares}


def layer_table(stats: dict[str, Any], width: int = WIDTH) -> str:
    """One row a layer, and one of all; past `MOST_ROWS` those with the most cycles have rows of their own, and the others share one."""
    shown, others = _largest([stats["layers"][place] for place in rows_of_layers(stats["layers"])], itemgetter("cycles"))
    end, note = _sums(LAYER_HEADS, shown, others, f"{len(others):,} more", stats["cycles"])
    for step in ("step ", ""):  # `step 0: matmul`; where that is cut, `0: matmul` for all: there is more room for what a step computes
        rows = [(_name(layer, step), layer["kind"], _line(layer), *layer_cells(layer, stats["cycles"])) for layer in shown]
        text = table(LAYER_HEADS, [*rows, *end], width=width)
        if is_whole := all(printable(row[0]) in text for row in rows):
            break
    if not is_whole:  # of a step's operators the first alone, whole, is worth more than the start of the first and the end of the last
        rows = [row if printable(row[0]) in text else (_cut_step(row[0], layer), *row[1:]) for row, layer in zip(rows, shown, strict=True)]
        text = table(LAYER_HEADS, [*rows, *end], width=width)
    return text + note + (BY_LINE if others else "") + ("" if is_whole else SHORTENED)


def line_table(stats: dict[str, Any], width: int = WIDTH) -> str:
    """`layer_table` with a row for each line of the source: its layers are added up, and the first column names the largest of them."""
    shown, others = _largest(by_lines(stats["layers"]), itemgetter("cycles"))
    rows = [_line_row(line, stats["cycles"]) for line in shown]
    end, note = _sums(LINE_HEADS, shown, others, counted(len(others), "more line"), stats["cycles"])
    text = table(LINE_HEADS, [*rows, *end], width=width)
    return text + note + ("" if all(printable(row[0]) in text for row in rows) else SHORTENED)


def roofline_table(runtime: Timed) -> str:
    """For each layer that fetches weights, and the model: its intensity, its speed, and the most that its intensity allows."""
    target = runtime.program.target
    model, *layers = works_of(runtime)
    shown, others = _largest([layer for layer in layers if layer.drawable], attrgetter("cycles"))
    head = f"{printable(model.name)} on {target.name}: intensity in multiply-accumulates for each byte of weights, speed in TOPS"
    works = [*shown, *([model] if model.drawable else [])]
    rows = ((w.name, f"{w.intensity:,.1f}", f"{w.rate(target) / 1e12:.3g}", f"{w.roof(target) / 1e12:.3g}") for w in works)
    text = table(("layer", "intensity", "speed", "roof"), rows)
    notes = [EARLY] if any(work.is_fetched_early(target) for work in works) else []
    notes += [KEPT] if any(work.kept for work in layers) else []
    notes += [f"The roof of the whole model is that of {model.link}."] if model.drawable and model.limit(target) == model.link else []
    more = f"\n({counted(len(others), 'more layer')} with fewer cycles)" if others else ""
    return "\n\n".join([wrapped(head), text + more, *map(wrapped, notes)])


def memory_table(runtime: Timed) -> str:
    """The values in the unified buffer: their rows, and their instructions from the first write to the last read."""
    program = runtime.program
    head = (
        f"unified buffer: peak {program.peak_rows:,} of {program.target.unified_buffer_rows:,} rows, "
        f"lower bound {program.lower_bound_rows:,} rows"
    )
    rows = [(r.name, f"{r.start:,}", f"{r.rows:,}", f"{r.first:,}", f"{r.last:,}") for r in program.residents]
    return f"{wrapped(head, '  ')}\n\n{table(('buffer', 'start', 'rows', 'from', 'to'), rows)}"


def wrapped(text: str, indent: str = "") -> str:
    """A sentence in lines of 80 columns; `indent` stands before all but the first."""
    return "\n".join(folded(text, WIDTH, indent=indent))


def _largest(layers: Sequence[T], size: Callable[[T], int]) -> tuple[list[T], list[T]]:
    """The `MOST_ROWS` largest layers, or lines, by their cycles, and the others; both in the order in which they came."""
    largest = set(sorted(range(len(layers)), key=lambda i: (-size(layers[i]), i))[:MOST_ROWS])
    return [layers[i] for i in sorted(largest)], [layer for i, layer in enumerate(layers) if i not in largest]


def _line_row(line: dict[str, Any], whole: int) -> tuple[str, ...]:
    numbers = (f"{line['cycles']:,}", tenths(line["cycles"], whole), f"{line['tile_fetches']:,}")
    return (line["name"], f"{line['layers']:,}", _line(line), *numbers, *waiting_cells(line))


def _line(layer: Mapping[str, Any]) -> str:
    """The line of the source; a dash for what comes from none, such as a value that a model hands back as it got it."""
    return f"{layer['line']}" if layer["line"] else "–"


def _name(layer: Mapping[str, Any], step: str = "step ") -> str:
    """Its name; of a step of the host also what it computes: `step 1: softmax`. The kind is beside it."""
    name = layer["name"].removeprefix(f"{HOST} ") if layer["kind"] == HOST else layer["name"]
    return f"{name.replace('step ', step)}: {first_names(layer['operators'])}" if layer.get("operators") else name


def _cut_step(name: str, layer: Mapping[str, Any]) -> str:
    """The row's name; of a step of the host with several operators, the first alone: `0: matmul…`."""
    return f"{name.partition(',')[0]}…" if len(layer.get("operators", ())) > 1 else name


def _sums(
    heads: Sequence[str], shown: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]], more: str, whole: int
) -> tuple[list[tuple[str, ...]], str]:
    """The last rows of a table of layers or lines: `more`, which are the `others`, and `whole`, each with cycles and their share alone; and
    the note on rounding."""
    rest = sum(each["cycles"] for each in others)
    sums = [*([(more, rest)] if others else []), ("in all", whole)]
    rows = [(name, "", "", f"{cycles:,}", tenths(cycles, whole), *[""] * (len(heads) - 5)) for name, cycles in sums]
    return rows, _rounding([100 * cycles / max(1, whole) for cycles in (*(each["cycles"] for each in shown), rest)])


def _rounding(shares: Sequence[float], which: str = "they") -> str:
    """A note under a table whose percentages, as they are printed, add up to 0.2 or more away from what they are; else nothing."""
    found = sum(round(share, 1) for share in shares)
    note = f"(Each row is rounded by itself; as printed {which} add up to {found:.1f}.)"
    return "\n" + wrapped(note) if abs(found - sum(shares)) > 0.15 else ""


def scaling(runtimes: Sequence[Timed]) -> list[dict[str, Any]]:
    """One model on different numbers of cores, a row for each: what more cores gain, and what they can't. Each program has an input.

    `batch` are the items of each core. `speedup` is the first row's cycles over this one's, `efficiency` the speed-up over how many times
    as many cores there are: 1 where twice the cores are twice as fast.
    """
    first, found = runtimes[0], []
    for runtime in runtimes:
        stats, cores = runtime.stats, runtime.program.cores
        speedup = max(1, first.stats["cycles"]) / max(1, stats["cycles"])
        own = {"cores": cores, "batch": next(iter(runtime.inputs.values())).shape[0] // cores}
        times = {"cycles": stats["cycles"], "seconds": stats["seconds"], "speedup": speedup}
        rates = {key: stats[key] for key in ("tops", "utilization", "bottleneck")}
        found.append({**own, **times, "efficiency": speedup * first.program.cores / cores, **rates})
    return found


def scaling_table(runtimes: Sequence[Timed]) -> str:
    """The rows for the terminal."""
    program, rows = runtimes[0].program, scaling(runtimes)
    batch = rows[0]["batch"] * rows[0]["cores"]
    head = f"{printable(program.name)} on {program.target.name}, a batch of {batch:,} divided among cores"
    return f"{wrapped(head, '  ')}\n\n{table(SCALING_HEADS, scaling_cells(rows), left=0)}"


def scaling_cells(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The rows as text, in the order of `SCALING_HEADS`; their times have one unit."""
    return [
        (
            *(f"{row[key]:,}" for key in ("cores", "batch", "cycles")),
            *(time, f"{row['speedup']:.2f}", f"{100 * row['efficiency']:.0f} %", f"{row['tops']:.3g}", row["bottleneck"]),
        )
        for row, time in zip(rows, durations([row["seconds"] for row in rows]), strict=True)
    ]
