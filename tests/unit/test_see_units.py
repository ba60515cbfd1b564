"""The picture of a machine's units: of programs for TPU v2, and of TPU v1's, whose units any machine's picture has, too."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.command_line import run
from tests.support.pictures import SVG, assert_readable, chain_program
from tpucc.isa.assembler import assemble
from tpucc.isa.container import encode
from tpucc.isa.program import Program
from tpucc.prose import percent
from tpucc.see.charts.memory import memory_svg
from tpucc.see.charts.units import units_svg
from tpucc.sim.timing import time_program

LAYER = """
.target tpu_v2
.memory x input rows=16
.memory w input rows=200
.memory y output rows=8
.layer fc forward weights=200x40
.layer change optimizer
.expression 0 "max(a, 0.0)"

.for fc
    load hbm=x y=0 rows=216
    synchronize engine=weights wait=memory
    push_weights a=16 rows=128 lanes=40
    synchronize engine=matrix wait=memory
    matrix_multiply a=0 y=300 rows=8, switch
    push_weights a=144 rows=72 lanes=40
    matrix_multiply a=8 y=300 rows=8, switch, accumulate
.for change
    synchronize engine=vector wait=matrix
    vector function=of_a expression=0 a=300 y=308 inner=8
    synchronize engine=memory wait=vector
    store a=308 hbm=y rows=8
    halt
"""
BAR = re.compile(r"(\w+)(?: · .*)? · instruction (\d+) · cycles ([\d,]+)–([\d,]+)")


def of_v2() -> Program:
    return assemble(LAYER, "layer.asm")


def bars(svg: str) -> list[tuple[float, float, float, str, int, int, int]]:
    """Of each bar its left edge, its width and its top; the mnemonic, the instruction, and its cycles."""
    found = []
    for rect in ET.fromstring(svg).iter(f"{SVG}rect"):
        words = rect.findtext(f"{SVG}title", "")
        if (bar := BAR.fullmatch(words)) is not None:
            place = (float(rect.get(name, "nan")) for name in ("x", "width", "y"))
            found.append((*place, bar[1], *(int(number.replace(",", "")) for number in bar.groups()[1:])))
    return found  # type: ignore[return-value]


@pytest.mark.parametrize("program", [of_v2(), chain_program("iris", 150, [4, 256, 3])], ids=["v2", "v1"])
def test_each_instruction_that_takes_time_is_a_bar_at_its_unit(program: Program) -> None:
    times, machine = time_program(program), program.machine
    svg = units_svg(program, times)
    assert_readable(svg)
    drawn = bars(svg)
    assert {bar[4] for bar in drawn} == {i for i in range(len(program.instructions)) if times.end[i] > times.start[i]}
    per_cycle = 696 / times.makespan
    unit_at: dict[float, int] = {}
    for left, width, top, mnemonic, index, start, end in drawn:
        spec = machine.by_opcode[int(program.instructions["opcode"][index])]
        assert (mnemonic, start, end) == (spec.mnemonic, times.start[index], times.end[index])
        assert left == pytest.approx(84 + start * per_cycle, abs=0.1)
        assert width == pytest.approx((end - start) * per_cycle, abs=0.11)
        assert unit_at.setdefault(top, spec.engine) == spec.engine
    assert len(set(unit_at.values())) == len(unit_at)


def test_the_busiest_unit_is_in_the_headline_and_parts_stand_above() -> None:
    program = of_v2()
    times = time_program(program)
    svg = units_svg(program, times)
    memory = sum(int(times.end[i] - times.start[i]) for i in (0, 10))
    assert f"memory is at work for {percent(memory, times.makespan)} of them" in svg
    parts = re.findall(r"<title>(forward|optimizer) · cycles ([\d,]+)–([\d,]+)</title>", svg)
    assert [part[0] for part in parts] == ["forward", "optimizer"]
    change = int(parts[1][1].replace(",", ""))
    column = times.makespan / (696 // 12)
    assert abs(change - times.start[8]) <= column, "the optimizer's part begins in the column of its first instruction"


def test_the_map_of_a_memory_says_its_name() -> None:
    times = time_program(of_v2())
    assert "rows of the vector memory" in memory_svg(of_v2(), times.start, times.end, times.makespan)


def test_viz_draws_programs_and_listings_of_other_machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, listing, drawn = (tmp_path / name for name in ("layer.tpub", "layer.asm", "timeline.svg"))
    program.write_bytes(encode(of_v2()))
    listing.write_text(LAYER)
    expected = units_svg(of_v2(), time_program(of_v2()))
    for file in (program, listing):
        assert run("viz", file, "--kind", "timeline", "-o", drawn) == 0
        assert drawn.read_text() == expected
    listing.write_text(LAYER.replace("hbm=y rows=8", "hbm=y rows=7"))
    assert run("viz", listing, "--kind", "timeline", "-o", drawn) == 3
    capsys.readouterr()
    assert run("viz", program, "--kind", "memory", "-o", tmp_path / "memory.svg") == 2
    assert "has no memory map to draw" in capsys.readouterr().err
    assert run("viz", program, "--kind", "layers", "-o", tmp_path / "layers.svg") == 2
    assert "viz --kind timeline" in capsys.readouterr().err


def test_two_matrix_units_have_one_colour_and_stand_together() -> None:
    program = assemble(LAYER.replace("tpu_v2", "tpu_v3"), "layer.asm")
    svg = units_svg(program, time_program(program))
    order = [
        text
        for text in re.findall(r"<text[^>]*>([a-z_0-9]+)</text>", svg)
        if text in {"weights", "matrix", "weights_2", "matrix_2", "vector"}
    ]
    assert order == ["weights", "matrix", "weights_2", "matrix_2", "vector"]


def test_the_name_of_a_short_part_stands_higher() -> None:
    """The optimizer's part is a few exponentials before a long transfer."""
    text = LAYER.replace("max(a, 0.0)", "exp(" * 8 + "a" + ")" * 8)
    text = text.replace(".layer change optimizer", ".layer change optimizer\n.layer last update").replace(
        "    synchronize engine=memory wait=vector\n", ".for last\n    synchronize engine=memory wait=vector\n"
    )
    program = assemble(text, "layer.asm")
    svg = units_svg(program, time_program(program))
    heights = {words: float(y) for y, words in re.findall(r'<text[^>]* y="([\d.]+)"[^>]*>(forward|optimizer|update)</text>', svg)}
    assert heights["forward"] == heights["update"]
    assert heights.get("optimizer", 0.0) == heights["forward"] - 14
