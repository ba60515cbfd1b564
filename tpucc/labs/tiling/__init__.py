"""Lab 4: a product layer as the machine's multiplies, tile by tile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np

from tpucc.diagnostics import Error, ProgramError, counted
from tpucc.explain.comparison.pairs import Pair, paired, spent
from tpucc.explain.comparison.reasons import Group, reasons_of
from tpucc.explain.critical import Limit
from tpucc.labs.judging import Scale, judged
from tpucc.labs.lab import Exchange, Oral, Outcome, Question, Submission, Test, Wrong, declared, require_fit
from tpucc.labs.tiling.models import Model, built_in_cycles, conv, convolutions, fc, ragged, square, with_zeros
from tpucc.labs.tiling.rules import MOST_ROWS, Rules, broken_rule, described, lines_of, numbered_visits, order_text, rules, visits_of
from tpucc.machines.v1 import Flag
from tpucc.plugins.failures import failure_behind
from tpucc.stages import Stages
from tpucc.stages.product_lines import read_product
from tpucc.stages.products import ProductLayer, WrittenProduct

CYCLES = Scale(1.1, 1.6)
"""Of the quotient of a program's cycles and those of the built-in lowering."""
WHOSE = "E0525"
"""Says only which stage made an invalid program; other diagnostics say what is wrong with it."""
MOST = 40
"""Lines of a layer that a question is about."""
WIDEST = 200
"""Characters of a line that a message shows."""


@dataclass(slots=True)
class Stage:
    """The submission as the stages `lower_fc` and `lower_conv`; keeps the layers that it was asked for, and its lines."""

    submission: Submission
    written: list[tuple[ProductLayer, list[str], WrittenProduct]] = field(default_factory=list)

    def lower(self, function: str, layer: ProductLayer) -> list[str]:
        """The lines of one layer, which can be read. Raises `Failed`."""
        given = replace(layer, builtin=list)  # the built-in lowering stays here: this one has no lines
        lines = lines_of(self.submission.call(function, given))
        try:
            product = read_product(layer, lines)
        except ProgramError as error:
            first = error.diagnostics[0]
            text = f"`{lines[first.span.line - 1].strip()[:WIDEST]}`: " if first.span else ""
            raise Wrong(f"{text}{first.code}: {first.message}") from None
        if sum(product.groups) > MOST_ROWS:
            raise Wrong(f"asked for {sum(product.groups):,} accumulator rows; the machine has {layer.target.accumulator_rows:,}")
        self.written.append((layer, lines, product))
        return lines

    def stages(self) -> Stages:
        """These two stages, and else the built-in ones."""
        return Stages(lower_fc=partial(self.lower, "lower_fc"), lower_conv=partial(self.lower, "lower_conv"))


def _words(rule: Rules) -> Mapping[str, Any]:
    """What the handout says for this term."""
    n, k = (1, 0) if rule.columns_down else (0, 1), (1, 0) if rule.levels_down else (0, 1)
    lines = [] if rule.halves else [".groups [3 3]"]
    for block in n:
        lines += [".groups [3]"] * rule.halves
        for turn, level in enumerate(k):
            more = ", accumulate" if turn else ""
            lines.append(f"matrix_multiply ub=x.{level} acc=g{n.index(block)} rows=3 tile={2 * level + block}, switch{more}")
        lines += [f"set_configuration block={block}", f"activate acc=g{n.index(block)} ub=y.{block} inner=3"]
    return {"hand": "\n".join(lines), "cycles": CYCLES}


def _public(rule: Rules) -> Sequence[Test]:
    """What `check` runs. Halves of the accumulators are asked for where rows are many."""
    whole = replace(rule, halves=False)
    return (
        Test("one tile", 5, partial(lowered, whole, [fc(rule, 5, 4, 4)])),
        Test("several tiles", 10, partial(lowered, whole, [fc(rule, 5, 12, 6)])),
        Test("many rows", 10, partial(lowered, rule, [fc(rule, 2 * rule.accumulators + 5, 6, 7)])),
        Test("a convolution", 10, partial(lowered, whole, [conv(rule, (1, 5, 6, 3), 5, 3)])),
        Test("cycles", 15, partial(quick, rule, fc(rule, 3 * rule.accumulators, 10, 11))),
    )


def _hidden(rule: Rules, draw: Random, _: str) -> Sequence[Test]:
    """What only `grade` runs."""
    whole = replace(rule, halves=False)
    return (
        Test("ragged sizes", 6, partial(lowered, whole, list(ragged(draw, rule)))),
        Test("tile order", 6, partial(lowered, whole, [square(draw, rule)])),
        Test("convolutions", 10, partial(lowered, whole, list(convolutions(draw, rule)))),
        Test("tiles of zeros", 10, partial(lowered, whole, [with_zeros(rule, draw.randrange(3, 20))])),
        Test("16-bit values", 10, partial(lowered, whole, [fc(rule, draw.randrange(6, 12), 6, 5, bits=16)])),
        Test("cycles", 8, partial(quick, rule, _large(draw, rule))),
    )


def _large(draw: Random, rule: Rules) -> Model:
    return fc(rule, rule.accumulators * draw.randrange(2, 4) + draw.randrange(1, 9), draw.randrange(9, 13), draw.randrange(9, 13))


def lowered(rule: Rules, models: Sequence[Model], submission: Submission) -> Outcome:
    """Models of one layer, compiled with the submission and judged. All must be right."""
    return [compared(rule, model, submission)[0] for model in models][-1]


def quick(rule: Rules, model: Model, submission: Submission) -> Outcome:
    """How many cycles a model takes, against the built-in lowering. A wrong program loses all points."""
    best = built_in_cycles(model)
    found, rows = compared(rule, model, submission)
    cycles, least = sum(rows.values()), sum(best.values())
    share = CYCLES.share(cycles / least)
    told = [f"{cycles / least:.3f} of the built-in lowering's cycles ({cycles:,} instead of {least:,}); {CYCLES}"]
    if share < 1:
        told = [f"{told[0]}.", *reasons_of(paired(best, rows), _why)]
    return replace(found, share=share, message=" ".join(told), measures={"cycles ÷ reference": cycles / least})


def _why(group: Group, _: Pair) -> str:
    """What lines have to do with the transfers that are added around them."""
    last = ": a result's buffer goes to the host after its last activation, and a last pass of few rows hides little of that"
    return last if group.limit is Limit.HOST_LINK else ""


def compared(rule: Rules, model: Model, submission: Submission) -> tuple[Outcome, Mapping[str, int]]:
    """One model with the submission's lowering: its integers, then the term's rules; and what its cycles are spent on. Raises `Failed`."""
    stage = Stage(submission)
    try:
        exe = model.compiled(stage.stages())
        verdict, wrong = judged(exe)
    except Error as error:
        if not stage.written or failure_behind(error):
            raise
        told = [found for found in error.diagnostics if found.code != WHOSE] or error.diagnostics
        raise Wrong("\n".join(f"{found.code}: {found.message}" for found in told), **_shown(stage, model)) from None
    if wrong:
        raise Wrong(f"an integer is wrong: {wrong}", **_shown(stage, model))
    for layer, lines, product in stage.written:
        if problem := broken_rule(layer, product, rule, lines):
            raise Wrong(problem, **_shown(stage, model))
    return Outcome(1, f"equal; {verdict.cycles:,} cycles", drawing=_shown(stage, model)["drawing"]), spent(exe.runtime)


def _shown(stage: Stage, model: Model) -> dict[str, str]:
    """The first layer, its lines, and the order of the tiles in them."""
    layer, lines, product = stage.written[0]
    visits = visits_of(layer, product)
    drawing = order_text(layer, visits) if visits else ""
    return {"given": f"{described(layer)}\nof the model\n{model.source}", "found": "\n".join(lines), "drawing": drawing}


def _made(exchange: Exchange) -> tuple[ProductLayer, list[str], WrittenProduct]:
    """A layer and its lines, which are few. Raises `Failed` and `ProgramError`."""
    layer, lines = exchange.arguments[0], lines_of(exchange.answer)
    require_fit(len(lines) <= MOST, f"{len(lines)} lines")
    return layer, lines, read_product(layer, lines)


def _given(layer: ProductLayer, lines: Sequence[str]) -> str:
    return "\n".join([described(layer), "your lines:", *lines])


def multiplied(exchange: Exchange, oral: Oral) -> Question:
    """Which part of the product a line is."""
    layer, lines, product = _made(exchange)
    own, visits = [line for line in lines if line.strip()[0] not in ".;"], numbered_visits(layer, product)
    require_fit(bool(visits))
    number = oral.draw.choice(sorted(visits))
    visit, flags = visits[number], int(product.records["flags"][number])
    adds = "adds to a sum that is begun" if flags & Flag.ACCUMULATE else "begins a sum"
    words = f"Rows {visit.row} to {visit.row + visit.rows - 1} of column block n={visit.n}, level k={visit.k}. It {adds}, and its tile is "
    words += "switched to." if flags & Flag.SWITCH else "that of the multiply before it."
    asked = f"Which part of the product is `{own[number].strip()}`? Why does it have these flags and no others?"
    return Question(asked, f"{words}\n{order_text(layer, list(visits.values()))}", _given(layer, lines))


def fewer(exchange: Exchange, oral: Oral) -> Question:
    """What changes with fewer accumulators."""
    layer, lines, _ = _made(exchange)
    most = layer.target.accumulator_rows
    rows = oral.draw.choice((most // 2, most // 3, most // 4))
    words = f"the machine had {rows} rows of accumulators and not {most}"
    given = replace(layer, target=msgspec.structs.replace(layer.target, accumulator_rows=rows))
    return oral.what_if(exchange, words, (given,), _counts, given=_given(layer, lines))


def _counts(exchange: Exchange) -> str:
    _, lines, product = _made(exchange)
    switches = counted(int(np.count_nonzero(product.records["flags"] & Flag.SWITCH)), "switch", "switches")
    return f"{counted(len(lines), 'line')}, {counted(len(product.groups), 'accumulator group')}, {switches} to a tile"


LAB = declared(Path(__file__).parent, rules=rules, words=_words, public=_public, hidden=_hidden, asks=(multiplied, fewer))
