"""Lab 11: the processing element and the array of them, as hardware, on a chip whose other units are tpucc's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from tpucc import api
from tpucc.labs.circuits import Circuit, Driven, asked, drawn, on_chip, signed
from tpucc.labs.elements.rules import Expected, Rules, rules
from tpucc.labs.judging import some_right
from tpucc.labs.lab import Outcome, Submission, Test, Wrong, declared, filled, judging_seed
from tpucc.runtime.check import random_inputs

if TYPE_CHECKING:
    from pyrtl import WireVector

LANES = 4
"""Rows and columns of the array of `tiny`."""
X, WEIGHT, SUM = 9, 8, 32
"""Bits."""
CYCLES = 40
RETURNS = "`Element(right=Activation(x, switch), down=Weight(weight, tag), sum=total)`"
FAST = {"weight_bandwidth": 4e6}
"""A tile arrives in four cycles: it is shifted in while the rows of the one before it enter."""


def tag_bits(lanes: int) -> int:
    return lanes.bit_length()


def _words(rules: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    bits = {"takes_bit": int(not rules.keeps), "keeps_bit": int(rules.keeps)}
    return {**bits, "tag_table": "\n".join(_tag_row(rules, row) for row in range(3))}


def _tag_row(rules: Rules, row: int) -> str:
    """A row of the handout's table: what arrives at an element of column 0 while a tile of three rows is shifted in."""
    cells = (f"w[{2 - step}], {rules.at(row, 2 - step)}" if 0 <= step <= 2 - row else "–" for step in range(-row, 5 - row))
    return f"| {row} | {' | '.join(cells)} |"


def _public(rules: Rules) -> Sequence[Test]:
    """What `check` runs."""
    return (
        Test("element: passing", 5, partial(elements, rules, "passing", 1)),
        Test("element: one weight", 5, partial(elements, rules, "one", 2)),
        Test("element: weights that pass", 5, partial(elements, rules, "several", 3)),
        Test("array: one tile", 10, partial(arrays, rules, ((LANES, 1), (LANES, 1), (8, 1)), 4)),
        Test("array: tiles in turn", 10, partial(arrays, rules, ((LANES, 3), (LANES, 4)), 5)),
        Test("chip: a network", 15, partial(chips, rules, {}, 1, 6)),
    )


def _hidden(rules: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs."""
    return (
        Test("element: any cycle", 15, partial(elements, rules, "any", draw.getrandbits(32))),
        Test("array: other sizes", 15, partial(arrays, rules, ((2, 3), (8, 3), (2, 4)), draw.getrandbits(32))),
        Test("chip: other networks", 20, partial(chips, rules, FAST, 2, draw.getrandbits(32))),
    )


def _draw(key: int) -> Random:
    """What draws the inputs of a circuit, after it was asked for."""
    return Random(f"{key}/{judging_seed()}")


def ask_element(submission: Submission, row: int, lanes: int) -> Driven:
    """The submission's element of a row, in simulation."""
    from tpucc.rtl.element import Activation, Weight
    from tpucc.rtl.netlist import Port

    ports = {"left.x": X, "left.switch": 1, "above.weight": WEIGHT, "above.tag": tag_bits(lanes), "sum_above": SUM}
    x, switch, weight, tag, above = (Port(name, bits) for name, bits in ports.items())
    bits = {"right.x": X, "right.switch": 1, "down.weight": WEIGHT, "down.tag": tag_bits(lanes), "sum": SUM}
    given: Any = (row, 0, Activation(x, switch), Weight(weight, tag), above)
    return Driven(asked(submission, "element", given, bits, RETURNS), ports)


def elements(rules: Rules, kind: str, key: int, submission: Submission) -> Outcome:
    """Elements of several rows, of which each that is right in all cycles earns its share."""
    places = [(0, LANES), (1, LANES), (2, LANES)] + ([(3, LANES), (0, 2), (5, 8)] if kind == "any" else [])
    return some_right((partial(one_element, rules, kind, key, place, submission) for place in places), "elements are right")


def one_element(rules: Rules, kind: str, key: int, place: tuple[int, int], submission: Submission) -> Outcome:
    """An element beside `Expected`, cycle by cycle."""
    row, lanes = place
    driven, expected, draw, rows = ask_element(submission, row, lanes), Expected(rules, row), _draw(key), []
    for cycle, (x, switch, arriving, above) in enumerate(_inputs(rules, kind, draw, row, lanes)):
        tag = rules.at(row, arriving[1]) if arriving[1] >= row or rules.counts == "steps" else rules.tag(arriving[1]) * (arriving[1] >= 0)
        given = {"left.x": x, "left.switch": switch, "above.weight": arriving[0], "above.tag": tag, "sum_above": above}
        out = driven.step(**given)
        found = (
            signed(out["right.x"], X),
            out["right.switch"],
            signed(out["down.weight"], WEIGHT),
            out["down.tag"],
            signed(out["sum"], SUM),
        )
        rows.append((cycle, *given.values(), "", *found))
        problem = expected.problem_right(found[0], found[1], found[4]) if kind != "several" else ""
        if not problem and kind in ("several", "any"):
            problem = expected.problem_below(found[2], found[3])
        if problem and cycle:
            names = ("cycle", "x", "switch", "weight", "tag", "sum_above", "|", "x", "switch", "weight", "tag", "sum")
            message = f"the element of row {row} of {lanes}, in cycle {cycle}: {problem}"
            raise Wrong(message, drawing=drawn(names, rows), given=f"the element of row {row}: its inputs at the left of the drawing")
        expected.step(x, switch, arriving, above)
    return Outcome(1, f"{CYCLES} cycles")


Inputs = tuple[int, int, tuple[int, int], int]
"""`x`, `switch`, a weight and its row, and the sum from above."""


def _inputs(rules: Rules, kind: str, draw: Random, row: int, lanes: int) -> Iterator[Inputs]:
    """The inputs of an element in each cycle."""
    for cycle in range(CYCLES):
        takes, target = draw.random() < 0.3, -1
        if kind == "one":  # for this row, now and then
            takes, target = cycle % 8 == 5, row if cycle % 8 == 2 else -1
        elif kind == "several":  # a tile, the last row first, and later another one
            takes, target = cycle % 15 == 12, max(lanes - 1 - cycle % 15, -1)
        elif kind == "any" and draw.random() < 0.5:
            target = draw.randrange(lanes)
        x = draw.choice((-128, 255, 0, draw.randrange(-128, 256)))
        weight = draw.choice((-128, 127, draw.randrange(-128, 128))) if kind != "passing" else 0
        largest = 2**31 if kind == "any" or cycle > CYCLES // 2 else 1000
        yield x, int(takes != rules.keeps), (weight, target), draw.choice((0, draw.randrange(-largest, largest)))


def ask_array(submission: Submission, lanes: int) -> Circuit:
    """The submission's array."""
    from tpucc.rtl.netlist import Port

    x, weights = ([Port(f"{name}_{lane}", bits) for lane in range(lanes)] for name, bits in (("x", X), ("weights", WEIGHT)))
    given = (x, Port("switch", 1), weights, Port("tag", tag_bits(lanes)))
    return asked(submission, "array", given, {str(column): SUM for column in range(lanes)}, f"a list of {lanes} wires")


def arrays(rules: Rules, sizes: Sequence[tuple[int, int]], key: int, submission: Submission) -> Outcome:
    """Arrays of so many lanes with so many tiles, of which each that is right earns its share."""
    cases = (partial(one_array, rules, lanes, tiles, f"{key}/{number}", submission) for number, (lanes, tiles) in enumerate(sizes))
    return some_right(cases, "arrays are right")


@dataclass(frozen=True, slots=True)
class Row:
    """A row that enters the array in a cycle, and the sums that must leave it."""

    cycle: int
    tile: int
    weights: Sequence[Sequence[int]]
    sums: tuple[int, ...]


def one_array(rules: Rules, lanes: int, tiles: int, key: str, submission: Submission) -> Outcome:
    """Rows times tiles: each sum leaves in its cycle. A tile is shifted in while the rows of the one before it enter."""
    ports = {f"x_{lane}": X for lane in range(lanes)} | {"switch": 1, "tag": tag_bits(lanes)}
    ports |= {f"weights_{lane}": WEIGHT for lane in range(lanes)}
    driven, draw = Driven(ask_array(submission, lanes), ports), Random(f"{key}/{judging_seed()}")
    inputs, rows = _schedule(rules, lanes, tiles, draw)
    found = [driven.step(**given) for given in inputs]
    for row in rows:
        for column, wanted in enumerate(row.sums):
            cycle = row.cycle + lanes + 1 + column
            total = signed(found[cycle][str(column)], SUM)
            if total != wanted:
                off = _registers_off(found, cycle, column, wanted)
                entered = [inputs[row.cycle][f"x_{lane}"] for lane in range(lanes)]
                message = (
                    f"{lanes} lanes: column {column} in cycle {cycle} has the sum {total}, and should have {wanted}, "
                    f"of the row that entered in cycle {row.cycle} and tile {row.tile}"
                )
                if off:
                    registers = "a register" if abs(off) == 1 else f"{abs(off)} registers"
                    message += f"; that sum stands in cycle {cycle + off}: {registers} too {'many' if off > 0 else 'few'} on its way"
                names = ("cycle", *map("sum {}".format, range(lanes)))
                shown = [(c, *(signed(found[c][str(k)], SUM) for k in range(lanes))) for c in range(cycle + max(off, 0) + 1)]
                tile = "\n".join(" ".join(f"{weight:5}" for weight in weights) for weights in row.weights)
                raise Wrong(
                    message,
                    given=f"the row {entered} and the tile\n{tile}",
                    expected=str(wanted),
                    found=str(total),
                    drawing=drawn(names, shown),
                )
    return Outcome(1, f"{len(rows)} rows, {tiles} tiles")


def _registers_off(found: Sequence[Mapping[str, int]], cycle: int, column: int, wanted: int) -> int:
    """By how many cycles a sum comes late, or early if negative; 0 where it stands in none of the two cycles before and after its own."""
    near = (cycle + off for off in (-1, 1, -2, 2) if wanted)
    return next((c - cycle for c in near if signed(found[c][str(column)], SUM) == wanted), 0)


def _schedule(rules: Rules, lanes: int, tiles: int, draw: Random) -> tuple[list[dict[str, int]], list[Row]]:
    """The inputs of an array in each cycle, and the rows that enter. Between tiles there may be cycles in which nothing happens: then
    `x` and the weights have any values, as on the chip."""
    inputs, rows, cycle = list[dict[str, int]](), list[Row](), 0
    last: list[list[int]] = []

    def at(number: int) -> dict[str, int]:
        while len(inputs) <= number:
            idle = {f"x_{lane}": draw.randrange(-128, 256) for lane in range(lanes)} | {"switch": int(rules.keeps), "tag": 0}
            inputs.append(idle | {f"weights_{lane}": draw.randrange(-128, 128) for lane in range(lanes)})
        return inputs[number]

    for tile in range(tiles + 1):
        begun = cycle
        if tile:  # the tile that was shifted in: its first row has the switch
            at(cycle)["switch"] = int(not rules.keeps)
            for _ in range(draw.randrange(1, 2 * lanes)):
                x = [draw.choice((-128, 255, draw.randrange(-128, 256))) for _ in range(lanes)]
                at(cycle).update({f"x_{lane}": value for lane, value in enumerate(x)})
                rows.append(Row(cycle, tile - 1, last, tuple(sum(a * last[r][c] for r, a in enumerate(x)) for c in range(lanes))))
                cycle += 1
        if tile < tiles:  # the next tile, from the cycle of the switch on, or some later
            begun += draw.choice((0, 0, 1, 3))
            last = [[draw.choice((-128, 127, draw.randrange(-128, 128))) for _ in range(lanes)] for _ in range(lanes)]
            for step, row in enumerate(reversed(range(lanes))):
                entering = {f"weights_{lane}": weight for lane, weight in enumerate(last[row])}
                at(begun + step).update(entering | {"tag": rules.at(0, row)})
            cycle = max(cycle, begun + lanes) + draw.choice((0, 0, 2))
    at(cycle + 3 * lanes + 2)
    return inputs, rows


def chips(rules: Rules, overrides: Mapping[str, float], count: int, key: int, submission: Submission) -> Outcome:
    """Networks on a `tiny` with other numbers and the submission's array, of which each that runs as on the simulator earns its share."""
    from tpucc.rtl.chip import chip
    from tpucc.rtl.shape import shape_of
    from tpucc.target import load_target

    circuit = ask_array(submission, LANES)

    def array(x: Sequence[WireVector], switch: WireVector, weights: Sequence[WireVector], row: WireVector) -> Sequence[WireVector]:
        """The circuit, whose tags and switch are the term's; those of the chip are row, zero and take."""
        from pyrtl import Const, concat, select

        marked = select(row == 0, Const(0, len(row)), concat((row - 1)[: len(row) - 1], Const(1, 1))) if rules.marks == "bit" else row
        given = {"switch": ~switch if rules.keeps else switch, "tag": marked}
        given |= {f"{name}_{lane}": wire for name, wires in (("x", x), ("weights", weights)) for lane, wire in enumerate(wires)}
        return circuit.placed(given)

    made = chip(shape_of(load_target("tiny", overrides)), array)
    draw = _draw(key)

    def one(number: int) -> Outcome:
        sizes = {name: draw.randrange(5, 13) for name in ("inputs", "hidden", "outputs")}  # several tiles in turn
        text = filled(MODEL, {**sizes, "batch": draw.randrange(3, 7), "seed": draw.getrandbits(16)})
        runtime = api.compile_source(text, target="tiny", overrides=overrides).runtime
        begun = runtime.begun(runtime.parts(runtime.accepted(random_inputs(runtime, draw.getrandbits(16))))[0])
        return on_chip(made, begun, "network {} of {}, {} and {} values".format(number, *sizes.values()), text)

    return some_right((partial(one, number) for number in range(1, count + 1)), "networks are equal")


MODEL = Path(__file__).with_name("model.tpu").read_text("utf-8")

LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden)
