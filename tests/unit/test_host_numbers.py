"""What the host computes, and what the host and the vector unit share with the matrix unit, is said where the numbers stand."""

from __future__ import annotations

from functools import cache

import pytest

import tpucc
from tpucc.cli.summary import compile_text
from tpucc.viz.charts.tiles import tiles_svg
from tpucc.viz.page.summary import facts, layer_table, left_out
from tpucc.viz.pictures import layer_diagram
from tpucc.viz.statistics import read_statistics
from tpucc.viz.tables import counts_table, stream_table, timeline_table

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
        remarks = {name: remark for name, _, remark in facts(read_statistics(exe.stats))}
        assert (f"; {OF_VALUES:,} more on the host" in remarks["work"]) is is_there


def test_tiles_that_the_host_writes_are_no_weights() -> None:
    """For each of two items the right sides of two products; beside them the three weights."""
    exe = attention("device")
    assert (exe.stats["tiles"], exe.stats["written_tiles"]) == (7, 4)
    assert "weights 3 tiles, 192 KiB; 4 tiles that the host writes, 256 KiB" in words(compile_text(exe.compilation, exe.runtime, (), None))
    remarks = {name: remark for name, _, remark in facts(read_statistics(exe.stats))}
    assert remarks["weight tiles"].endswith("; the host writes 4 of them")
    drawn = tiles_svg(exe.runtime.program)
    assert ": 3 weight tiles, 4 tiles that the host writes, " in drawn
    assert ">weights<" in drawn
    assert ">computed values that the host writes<" in drawn
    assert drawn.count('class="k-host"') == 1 + 4, "one in the legend"


def test_a_step_of_the_host_has_its_operators_those_first_that_take_longest() -> None:
    exe = attention("host")
    [step] = (layer for layer in exe.stats["layers"] if layer["kind"] == "host")
    assert step["operators"] == ["matmul", "transpose", "softmax"]
    assert "step 0: matmul, transpose, softmax host" in words(timeline_table(exe.runtime, 120))
    assert "0: matmul" in timeline_table(exe.runtime), "the number and the first operator have room in 80 columns"
    assert "step 0: matmul, transpose, softmax host" in words(counts_table(exe.runtime, 120))
    assert "host step 0: matmul, transpose, softmax" in str(layer_table(read_statistics(exe.stats)))


def test_what_the_host_computes_at_the_edges_is_said_to_be_not_timed() -> None:
    source = "\n".join([
        "weights random(seed=0)", "model m(x: f32[4, 8]):", '    weight a: f32[8, 8] = "a.w"', '    weight b: f32[8, 8] = "b.w"',
        "    h = relu(x @ a)", "    return softmax(h @ b)",
    ])  # fmt: skip
    exe = tpucc.compile_source(source, keep={"a": "host"})
    after = {"operators": ["softmax"], "lines": [6], "macs": 0}
    assert exe.stats["untimed"] == {"before": {"operators": ["linear"], "lines": [5], "macs": 256}, "after": after}
    told = "Not timed: the host computes linear (line 5; 256 multiply-accumulates) before the device starts"
    told += " and softmax (line 6) after the device has finished."
    for text in (timeline_table(exe.runtime), counts_table(exe.runtime), stream_table(exe.runtime, 2)):
        assert f"({told})" in words(text)
    assert told in str(left_out(read_statistics(exe.stats)))
    alone = tpucc.compile_source(source, keep={"a": "host", "b": "host"}).runtime
    assert "(lines 5 and 6; 512 multiply-accumulates).)" in words(timeline_table(alone))
    assert "Not timed" not in timeline_table(tpucc.compile_source(DEPTHWISE).runtime), "integers are made of any input"


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
