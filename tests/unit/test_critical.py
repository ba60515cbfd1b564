"""The critical path, against the machine's own time; and the bottleneck that is read off it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.machine import Writer
from tpucc.api import Executable
from tpucc.diagnostics import Origin
from tpucc.explain.bottleneck import bottleneck
from tpucc.explain.critical import LIMITS, CriticalPath, Limit, Part, activities, critical_path, path_words, shares
from tpucc.explain.levers import TileRows
from tpucc.explain.roofs import ridge, works_of
from tpucc.explain.segments import Cause, matrix_segments
from tpucc.explain.timed import Timed
from tpucc.isa.effects import effects
from tpucc.isa.program import Division, LayerInfo, Program, Resident
from tpucc.machines.v1 import Flag, Opcode
from tpucc.prose import percent
from tpucc.see.pictures import roofline_of
from tpucc.sim.stream import stream
from tpucc.sim.timing import Clock, instruction_cycles

pytestmark = pytest.mark.usefixtures("any_ranges")

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
CASES = [("02_iris", 2), ("04_digits_mlp", 0), ("06_digits_lstm", 2), ("07_mnist_cnn", 0), ("13_quadric", 2), ("gallery/dlrm", 2)]


def compiled(stem: str, level: int) -> Executable:
    return tpucc.compile(PROGRAMS / f"{stem}.tpu", level=level)


def lengthened(program: Program, index: int, by: int) -> int:
    """The makespan, if an instruction took so many cycles more."""
    touched = effects(program.instructions)
    cycles = instruction_cycles(program, touched)
    cycles[index] += by
    clock = Clock(program, touched, cycles)
    clock.run()
    return max(clock.finished)


@pytest.mark.parametrize(("stem", "level"), CASES)
def test_the_program_takes_as_much_longer_as_an_instruction_of_the_path(stem: str, level: int) -> None:
    exe = compiled(stem, level)
    program, timeline = exe.runtime.program, exe.runtime.timeline
    path = critical_path(program, timeline)
    working = [part.instruction for part in path if part.limit not in (Limit.DEPENDENCIES, Limit.WEIGHT_SHIFT)]
    assert len(set(working)) == len(working)
    for index in working[:: 1 + len(working) // 40]:
        assert lengthened(program, index, 7) == timeline.makespan + 7


@pytest.mark.parametrize(("stem", "level"), one_of(2, CASES))
def test_the_path_has_no_gaps(stem: str, level: int) -> None:
    exe = compiled(stem, level)
    program, alone = exe.runtime.program, exe.runtime.timeline
    for timeline in (alone, stream(program, alone).timeline):
        path = critical_path(program, timeline)
        assert [part.start for part in path] == [0, *(part.end for part in path[:-1])]
        assert path[-1].end == timeline.makespan
        for part in path:
            start, end = (int(times[part.instruction]) for times in (timeline.start, timeline.end))
            match part.limit:
                case Limit.DEPENDENCIES:
                    assert (part.start, part.cycles) == (end, program.target.pipeline_cycles)
                case Limit.WEIGHT_SHIFT:
                    assert part.start >= end
                    assert part.cycles <= program.target.tile_shift_cycles
                case _:
                    assert (part.start, part.end) == (max(start, 0), end)


def test_an_activation_unit_that_waits_for_the_host_is_not_what_limits() -> None:
    """At -O0 the matrix unit waits for the activation unit, mostly while that one waits for rows of the host."""
    stats = compiled("05_digits_cnn", 0).stats
    assert stats["breakdown"]["raw_stall"] > stats["breakdown"]["input_stall"]
    assert (stats["bottleneck"], stats["advice"].split("=")[0]) == ("host link", "--set host_bandwidth")


def test_the_sentence_of_the_activation_unit_has_the_rate_of_the_rows_on_the_path() -> None:
    """A row takes a cycle, and that of a pool four. It also has the layers that take most of the unit's cycles."""
    runtime = compiled("05_digits_cnn", 0).runtime
    path = [part for part in critical_path(runtime.program, runtime.timeline) if part.limit is Limit.ACTIVATION]
    pools = [part for part in path if runtime.program.instructions["opcode"][part.instruction] == Opcode.POOL]
    others = [part for part in path if part not in pools]
    rates = (
        (path, "41 % of that for element-wise layers, at 1 to 4 cycles a row, 1."),
        (pools, "100 % of that for pooling, at 4 cycles a row; "),
        (others, "for element-wise layers, at one row a cycle; "),
    )
    for parts, rate in rates:
        explanation = bottleneck(runtime.program, CriticalPath.of(parts)).explanation
        assert "works in 100.0 % of the critical path, " in explanation
        assert rate in explanation


def test_a_stream_is_limited_by_the_unit_that_works_all_the_time() -> None:
    """The matrix unit waits for the activation unit, and the next tile isn't there before the end of that wait."""
    exe = compiled("06_digits_lstm", 2)
    found = exe.stats["stream"]
    assert found["breakdown"]["raw_stall"] > found["breakdown"]["weight_stall"]
    assert exe.stats["tile_fetches"] * exe.runtime.program.target.tile_fetch_cycles > 0.99 * found["cycles"]
    assert found["bottleneck"] == "weight memory"


def program() -> Program:
    """The tiny machine: a tile is fetched in 8 cycles and shifted in 4; two multiplies use it for 4 and 6 rows, of 16 cells each."""
    writer = Writer()
    tile = writer.tile(np.eye(4))
    for opcode, fields in (
        (Opcode.READ_HOST_MEMORY, {"host": 0, "dest": 0, "inner": 4}),
        (Opcode.READ_WEIGHTS, {"index": tile}),
        (Opcode.READ_WEIGHTS, {"index": tile}),
        (Opcode.MATRIX_MULTIPLY, {"flags": int(Flag.SWITCH), "ub": 0, "acc": 0, "inner": 4}),
        (Opcode.MATRIX_MULTIPLY, {"ub": 0, "acc": 0, "inner": 6}),
    ):
        writer.add(opcode, **fields)
    return writer.program()


def said(limit: Limit, made: Program | None = None, *more: Part) -> str:
    """The sentence of a program with a path that is one limit's in 75 of 100 cycles."""
    other = Limit.MATRIX_UNIT if limit is not Limit.MATRIX_UNIT else Limit.ACTIVATION
    path = CriticalPath.of([Part(limit, 1, 0, 75), *more, Part(other, 3, 75, 100)])
    return bottleneck(made or program(), path).explanation


def test_a_limit_with_nearly_as_large_a_share_is_told() -> None:
    for cycles, told in ((90, True), (50, False)):
        path = CriticalPath.of([Part(Limit.WEIGHT_SHIFT, 1, 0, 100), Part(Limit.MATRIX_UNIT, 3, 100, 100 + cycles)])
        assert ("; nearly as much: matrix unit 47.4 %; " in bottleneck(program(), path).explanation) == told


HIDDEN = """\
weights random(seed=2)
def conv(x, filters, name):
    weight k: f32[3, 3, x.shape[-1], filters] = "{name}.k"
    return conv2d(x, k, padding="same")
model m(image: f32[4, 16, 16, 3] in [0.0, 1.0]):
    h = relu(conv(image, 32, "c1"))
    h = relu(h + conv(relu(conv(h, 32, "c2")), 32, "c3"))
    return global_avg_pool(max_pool(h, 2))
"""
"""Its batch is split: tiles are fetched twice, mostly while other units work."""


def test_a_setting_says_what_the_same_program_gains_and_what_gains_more() -> None:
    exe = tpucc.compile_source(HIDDEN)
    seconds = exe.stats["end_to_end"]["seconds"]
    best, own = (next(each for each in exe.runtime.faster if field in (each.field, "")) for field in ("", "weight_bandwidth"))
    gains = [f"{percent(seconds - each.seconds, seconds)} less" for each in (own, best)]
    assert exe.stats["bottleneck"] == "weight memory"
    assert best.field == "host_bandwidth"
    assert exe.stats["advice"].startswith(
        f"--set weight_bandwidth=68e9 would fetch tiles in half the time: the same program takes {gains[0]} from end to end, and then"
    )
    assert exe.stats["advice"].endswith(f"; --set host_bandwidth=21.5e9 takes {gains[1]}")


def test_the_sentences_of_weights_and_products() -> None:
    made = program()
    fetched = "weight tiles are fetched in 75.0 % of the critical path, each in 8 cycles, and used for"
    twice = "--set weight_bandwidth=4e6 would fetch tiles in half the time"
    assert said(Limit.WEIGHT_MEMORY).startswith(f"{fetched} 10 rows; {twice}: the same program takes ")
    code = made.instructions.copy()
    code["flags"][4] = int(Flag.SWITCH)
    each = replace(made, instructions=code)
    larger = "a batch 2 times as large would use such a tile for the 8 rows that hide its fetch, if it stays in one piece"
    assert said(Limit.WEIGHT_MEMORY, each) == f"{fetched} 4 rows; {larger}"
    large = replace(each, residents=(Resident("all", 0, 0, 40, 0, 7),))
    assert said(Limit.WEIGHT_MEMORY, large).startswith(f"{fetched} 4 rows; {twice}: ")
    path = CriticalPath.of([Part(Limit.WEIGHT_MEMORY, 1, 0, 5), Part(Limit.WEIGHT_MEMORY, 2, 5, 75), Part(Limit.MATRIX_UNIT, 3, 75, 100)])
    assert bottleneck(each, path).explanation.startswith(f"{fetched.replace('used', 'most are used')} 6 rows; {twice}: ")
    shifted = "weight tiles are shifted in during 75.0 % of the critical path, each in 4 cycles, and used for 10 rows"
    more = "would use each tile for more rows"
    assert said(Limit.WEIGHT_SHIFT) == f"{shifted}; a batch 2 times as large {more}"
    full = replace(made, residents=(Resident("all", 0, 0, 40, 0, 7),))
    assert said(Limit.WEIGHT_SHIFT, full) == f"{shifted}; a batch 2 times as large, with --set unified_buffer_rows=96, {more}"
    parted = replace(made, division=Division(2, 2))
    assert said(Limit.WEIGHT_SHIFT, parted) == f"{shifted}; --set unified_buffer_rows=192 would compute the batch in larger parts"
    working = replace(made, layers=tuple(replace(layer, macs=140) for layer in made.layers))
    multiplies = "the matrix unit multiplies in 75.0 % of the critical path, with 88 % of its cells in use"
    assert said(Limit.MATRIX_UNIT, working).startswith(f"{multiplies}; --cores 2 would share the batch")
    by_lanes = LayerInfo("d", "conv", Origin(made_by="test"), macs=1000, weights=(9, 4))
    assert said(Limit.MATRIX_UNIT, replace(working, layers=(*working.layers, by_lanes))).startswith(multiplies)
    assert "fills and drains for 8 cycles" in said(Limit.DEPENDENCIES)


@pytest.mark.parametrize(
    ("rows", "only", "words"), [(1, True, "used for 1 row"), (1, False, "most are used for 1 row"), (2, True, "used for 2 rows")]
)
def test_rows_of_a_tile_in_words(rows: int, only: bool, words: str) -> None:
    assert TileRows(rows, only, rows, waits=False).words == words


def test_the_sentences_of_the_host() -> None:
    link = said(Limit.HOST_LINK)
    assert "between the host and the unified buffer in 75.0 % of the critical path, at 0.004 GB/s; --set host_bandwidth=" in link
    assert "the host computes 0 steps in 75.0 % of the critical path, each in at least 10 µs" in said(Limit.HOST_WORK)


def test_shares_are_named_from_the_largest_on() -> None:
    path = [
        Part(Limit.HOST_LINK, 0, 0, 10),
        Part(Limit.ACTIVATION, 1, 10, 30),
        Part(Limit.HOST_LINK, 2, 30, 9995),
        Part(Limit.HOST_WORK, 3, 9995, 9999),
    ]
    assert path_words(shares(CriticalPath.of(path))) == "host link 99.8, activation 0.2"
    assert path_words(shares(CriticalPath.of(path)), 1) == "host link 99.8"
    assert list(shares(CriticalPath.of([])).values()) == [0.0] * len(Limit)


@pytest.mark.long
@pytest.mark.parametrize(("stem", "level"), [("05_digits_cnn", 0), ("06_digits_lstm", 2), ("09_cifar_resnet", 2)])
def test_a_wait_is_longer_by_what_its_root_takes_longer(stem: str, level: int) -> None:
    """Where the root is an instruction: the multiply that waits begins as much later. So the root is what to make shorter."""
    runtime = compiled(stem, level).runtime
    program, timeline = runtime.program, runtime.timeline
    touched = effects(program.instructions)
    cycles, multiplies = instruction_cycles(program, touched), np.flatnonzero(touched.multiplies)
    known, before, tried = activities(program, timeline), 0, 0
    for turn, multiply in enumerate(multiplies.tolist()):
        start = int(timeline.start[multiply])
        chain = [number for number in known.chain(int(known.predecessor[multiply]), before) if number < len(touched)]
        before, waited = int(timeline.end[multiply]), start > before
        if not (waited and chain) or turn % (1 + len(multiplies) // 200):
            continue
        clock = Clock(program, touched, cycles + 5 * (np.arange(len(touched)) == chain[-1]))
        clock.run()
        assert clock.start[multiply] == start + 5
        tried += 1
    assert tried >= 3


def test_roots_by_hand() -> None:
    """The matrix unit of the tiny machine waits 12 cycles for its tile, which is fetched and shifted in; at the end the array drains."""
    made = program()
    timeline = Timed(made).timeline
    segments = matrix_segments(made, timeline)
    found = [(LIMITS[root].value, cycles) for root, cycles in zip(segments.root.tolist(), segments.cycles.tolist(), strict=True)]
    together: dict[str, int] = {}
    for root, spent in found:
        together[root] = together.get(root, 0) + spent
    assert together == {"weight memory": 8, "weight shift": 4, "matrix unit": 10, "data dependencies": made.target.pipeline_cycles}


@pytest.mark.parametrize(("stem", "level"), [("05_digits_cnn", 2), ("06_digits_lstm", 0)])
def test_the_root_of_each_cycle_is_at_work_then(stem: str, level: int) -> None:
    """From the multiply that waits back to the first predecessor that had begun by then, for each segment alone."""
    runtime = compiled(stem, level).runtime
    program, timeline = runtime.program, runtime.timeline
    known, segments = activities(program, timeline), matrix_segments(program, timeline)
    multiplies = effects(program.instructions).multiplies
    before = 0
    for start, end, instruction, cause, root in zip(
        *(c.tolist() for c in (segments.start, segments.end, segments.instruction, segments.cause, segments.root)), strict=True
    ):
        assert start == before
        before = end
        if cause == Cause.ACTIVE:
            assert LIMITS[root] is Limit.MATRIX_UNIT
            continue
        waits = multiplies[instruction] and timeline.start[instruction] >= end
        number = int(known.predecessor[instruction]) if waits else known.last
        while known.start[number] > start:
            number = int(known.predecessor[number])
        assert known.start[number] <= start < end <= known.end[number]
        assert root == known.limit[number]


@pytest.mark.parametrize("stem", ["05_digits_cnn", "02_iris"])
def test_link_in_lasts_until_the_first_input_has_crossed(stem: str) -> None:
    """A padded convolution copies a row of constants before that, which is no input."""
    exe = compiled(stem, 2)
    program, timeline = exe.runtime.program, exe.runtime.timeline
    rows = [(program.host[block].start, program.host[block].end) for port in program.prologue_ports for block in port.blocks]
    reads = np.flatnonzero(effects(program.instructions).host_reads)
    first = next(each for each in reads if any(start <= program.instructions["host"][each] < end for start, end in rows))
    link_in = exe.stats["end_to_end"]["link_in"] * program.target.clock_hz
    assert round(link_in) == timeline.end[first]


def test_a_roofline_of_values_of_16_bits_has_half_the_peak_and_half_the_ridge() -> None:
    exe = tpucc.compile(PROGRAMS / "04_digits_mlp.tpu", activation_bits=16)
    model, *_ = works_of(exe.runtime)
    target = exe.runtime.program.target
    assert model.peak(target) == target.peak_ops / 2 == 1e12 * exe.stats["peak_tops"]
    assert ridge(target, model.bytes_per_value) == exe.stats["ridge_macs_per_weight_byte"]
    assert {"matrix unit: 45.9 TOPS", "ridge 675"} <= {
        "".join(text.itertext()) for text in ET.fromstring(roofline_of(exe.runtime)).iter() if text.tag.endswith("text")
    }
