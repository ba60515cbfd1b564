"""What the host computes, and what the host and the vector unit share with the matrix unit, is said where the numbers stand."""

from __future__ import annotations

from functools import cache

import pytest

import tpucc
from tpucc.cli.summary import compile_text
from tpucc.explain.end_to_end import PARTS
from tpucc.explain.stats import stats
from tpucc.explain.summary import facts
from tpucc.explain.tables import counts_table, stream_table, timeline_table
from tpucc.explain.timed import assumptions
from tpucc.isa.effects import effects
from tpucc.see.charts.tiles import tiles_svg
from tpucc.see.page.machine import machine_payload
from tpucc.see.page.summary import layer_table, left_out
from tpucc.see.pictures import layer_diagram
from tpucc.sim.timing import time_program

pytestmark = pytest.mark.usefixtures("any_ranges")

ATTENTION = """
weights random(seed=3)
model m(x: f32[2, 6, 8]):
    weight w: f32[8, 8]
    weight v: f32[8, 8]
    weight o: f32[8, 4]
    k = x @ v
    return (softmax((x @ w) @ transpose(k, (0, 2, 1))) @ k) @ o
"""
OF_WEIGHTS, OF_VALUES = 2 * 6 * 8 * (8 + 8 + 4), 2 * 6 * 6 * (8 + 8)
DEPTHWISE = """
weights random(seed=0)
model m(x: f32[2, 8, 8, 4]):
    weight a: f32[1, 1, 4, 16]
    weight w: f32[3, 3, 1, 16]
    return conv2d(relu(conv2d(x, a)), w, padding="same", groups=16)
"""


@cache
def attention(way: str, cores: int = 1) -> tpucc.Executable:
    return tpucc.compile_source(ATTENTION, settings={"write-weights": {"computed_products": way}}, cores=cores)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("cores", [1, 2])
def test_products_of_the_host_are_counted_apart(cores: int) -> None:
    by_host, by_device = (attention(way, cores).stats for way in ("host", "device"))
    assert (by_host["macs"], by_host["host_macs"]) == (OF_WEIGHTS, OF_VALUES)
    assert (by_device["macs"], by_device["host_macs"]) == (OF_WEIGHTS + OF_VALUES, 0)


def test_where_speed_leaves_products_out_it_says_so() -> None:
    by_host, by_device = attention("host"), attention("device")
    left_out, more = f"without {OF_VALUES:,} multiply-accumulates of the host", f"and {OF_VALUES:,} more by the host"
    for exe, is_there in ((by_host, True), (by_device, False)):
        assert (left_out in words(timeline_table(exe.runtime))) is is_there
        assert (more in words(compile_text(exe.compilation, exe.runtime, (), None))) is is_there
        remarks = {name: remark for name, _, remark in facts(exe.stats)}
        assert (f"; {OF_VALUES:,} more on the host" in remarks["work"]) is is_there


def test_tiles_that_the_host_writes_are_no_weights() -> None:
    """For each of two items the right sides of two products; beside them the three weights."""
    exe = attention("device")
    assert (exe.stats["tiles"], exe.stats["written_tiles"]) == (7, 4)
    assert "weights 3 tiles, 192 KiB; 4 tiles that the host writes, 256 KiB" in words(compile_text(exe.compilation, exe.runtime, (), None))
    remarks = {name: remark for name, _, remark in facts(exe.stats)}
    assert remarks["weight tiles"].endswith("; the host writes 4 of them")
    drawn = tiles_svg(exe.runtime.program)
    assert ": 3 weight tiles, 4 tiles that the host writes, " in drawn
    assert ">weights<" in drawn
    assert ">computed values that the host writes<" in drawn
    assert drawn.count('class="k-host"') == 1 + 4, "one in the legend"


def test_the_strip_of_weight_memory_has_room_for_the_tiles_that_the_host_writes() -> None:
    runtime = attention("device").runtime
    touched = effects(runtime.program.instructions)
    fetched = runtime.program.instructions["index"][touched.pushes]
    assert machine_payload(runtime.program, touched, runtime.waiting, None)["sizes"]["memory"] == 7 > fetched.max() >= 3


def test_a_step_of_the_host_has_its_operators_those_first_that_take_longest() -> None:
    exe = attention("host")
    [step] = (layer for layer in exe.stats["layers"] if layer["kind"] == "host")
    assert step["operators"] == ["matmul", "transpose", "softmax"]
    assert "step 0: matmul, transpose, softmax host" in words(timeline_table(exe.runtime, 120))
    assert "0: matmul" in timeline_table(exe.runtime), "the number and the first operator have room in 80 columns"
    assert "step 0: matmul, transpose, softmax host" in words(counts_table(exe.runtime, 120))
    assert "host step 0: matmul, transpose, softmax" in str(layer_table(exe.stats))


EDGES = "\n".join([
    "weights random(seed=0)", "model m(x: f32[4, 8]):", '    weight a: f32[8, 8] = "a.w"', '    weight b: f32[8, 8] = "b.w"',
    "    h = relu(x @ a)", "    return softmax(h @ b)",
])  # fmt: skip


def test_what_the_host_computes_at_the_edges_is_told() -> None:
    """Of h @ a it multiplies 256 pairs, and quantises 32 results; it dequantises 32 sums, and takes 32 softmaxes."""
    exe = tpucc.compile_source(EDGES, keep={"a": "host"})
    after = {"operators": ["softmax"], "lines": [6], "macs": 0, "elements": 64}
    assert exe.stats["untimed"] == {"before": {"operators": ["linear"], "lines": [5], "macs": 256, "elements": 288}, "after": after}
    told = "No cycles count what the host computes: linear (line 5; 256 multiply-accumulates) before the device starts"
    told += " and softmax (line 6) after the device has finished."
    for text in (timeline_table(exe.runtime), counts_table(exe.runtime), stream_table(exe.runtime, 2)):
        assert f"({told})" in words(text)
    assert "With the host's work before and after, one batch alone takes 24.5 µs, and each further one 20.4 µs, host work" in words(
        stream_table(exe.runtime, 2)
    )
    assert told in str(left_out(exe.stats))
    alone = tpucc.compile_source(EDGES, keep={"a": "host", "b": "host"}).runtime
    assert "(lines 5 and 6; 512 multiply-accumulates).)" in words(timeline_table(alone))
    assert "No cycles count" not in timeline_table(tpucc.compile_source(DEPTHWISE).runtime), "integers are made of any input"


def test_the_host_takes_as_long_at_the_edges_as_in_a_step() -> None:
    """By hand, at a microsecond a value and a millisecond a part: 1.288 and 1.064 ms, for each core in turn."""
    slow = {"host_step_seconds": 1e-3, "host_elements_per_second": 1e6}
    for cores in (1, 2):
        exe = tpucc.compile_source(EDGES.replace("f32[4, 8]", f"f32[{4 * cores}, 8]"), keep={"a": "host"}, overrides=slow, cores=cores)
        whole = exe.stats["end_to_end"]
        assert (whole["host_before"], whole["host_after"]) == pytest.approx((1.288e-3 * cores, 1.064e-3 * cores))
        assert whole["seconds"] == pytest.approx(whole["host_before"] + exe.stats["seconds"] + whole["host_after"])
        assert sum(whole[part] for part in PARTS) == pytest.approx(whole["seconds"])
        assert whole["stream_seconds"] == pytest.approx(whole["host_before"] + whole["host_after"]), "both are the host's"
        assert whole["bottleneck"] == whole["stream_bottleneck"] == "host work"


def test_a_softmax_costs_the_same_at_the_end_and_before_a_layer() -> None:
    """In a step the values cross back, too: the price of the host's own work is one."""
    exe = tpucc.compile_source(EDGES)
    before = tpucc.compile_source(EDGES.replace("softmax(h @ b)", "softmax(h) @ b"))
    target = exe.runtime.program.target
    [step] = before.runtime.program.host_steps
    assert step.elements == 96, "dequantised, softmax, quantised"
    assert before.stats["host_step_cycles"] == round(target.host_part_seconds(96) * target.clock_hz)
    assert exe.stats["end_to_end"]["host_after"] == target.host_part_seconds(64)


def test_without_edges_the_host_takes_nothing() -> None:
    """As the TPU paper counts, which excludes the host."""
    program = tpucc.compile_source(EDGES).runtime.program
    whole = stats(program, time_program(program))["end_to_end"]
    assert (whole["host_before"], whole["host_after"], whole["explanation"]) == (0.0, 0.0, "")
    assert whole["seconds"] == time_program(program).makespan / program.target.clock_hz


def test_layers_and_program_count_host_steps_alike() -> None:
    exe = attention("device")
    assert exe.compilation.layers is not None
    title, steps = layer_diagram(exe.compilation.layers).title, len(exe.runtime.program.host_steps)
    assert title.endswith(f"on the host in float32, {steps} host steps")


def test_the_activation_unit_s_share_of_the_peak_is_said() -> None:
    stats = tpucc.compile_source(DEPTHWISE, settings={"depthwise": {"unit": "vector"}}).stats
    assert (stats["macs"], stats["vector_macs"]) == (2 * 64 * 16 * (4 + 9), 2 * 64 * 16 * 9)


@pytest.mark.parametrize(("unit", "is_said"), [("vector", True), ("matrix", False)])
def test_two_shares_of_the_peak_differ_only_where_the_difference_is_said(unit: str, is_said: bool) -> None:
    runtime = tpucc.compile_source(DEPTHWISE, settings={"depthwise": {"unit": unit}}).runtime
    assert ("of peak above count products of the activation unit too" in words(timeline_table(runtime))) is is_said
    shares = runtime.stats["breakdown"]["useful_macs"], 100 * runtime.stats["utilization"]
    assert (shares[0] == pytest.approx(shares[1], rel=0.02)) is not is_said


def test_half_of_one_byte_is_one_byte() -> None:
    """And not 0, which would be rows as wide as the matrix unit."""
    packed = tpucc.compile_source(EDGES, overrides={"host_row_bytes": 1}).runtime
    [found] = (each for each in assumptions(packed) if each.field == "host_row_bytes")
    assert found.halved == found.seconds


def test_an_assumption_is_left_out_where_no_machine_has_half_or_twice_of_it() -> None:
    fastest = tpucc.compile_source(EDGES, overrides={"host_elements_per_second": 1e18}).runtime
    assert "host_elements_per_second" not in {each.field for each in assumptions(fastest)}
    assert "host_step_seconds" in {each.field for each in assumptions(fastest)}
