"""Where the weights of layers lie in their tiles: between groups are zeros, and matrices of a stack are apart."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import tpucc
from tests.support.cases import each
from tests.support.pictures import chain_program
from tpucc.explain.stats import stats
from tpucc.explain.tilegrid import tile_grid
from tpucc.isa.assembler import assemble, disassemble
from tpucc.isa.container import decode, encode
from tpucc.isa.program import Program
from tpucc.machines.v1 import Opcode
from tpucc.see.charts.tiles import tiles_svg
from tpucc.sim.timing import time_program

GROUPED = """
weights random(seed=0)
model grouped(x: f32[1, 3, 3, {channels}] in [-1.0, 1.0]):
    weight w: f32[2, 2, {own}, {filters}]
    return conv2d(x, w, groups={groups})
"""
STACKED = """
weights random(seed=0)
model stacked(x: f32[3, 5, 8] in [-1.0, 1.0]):
    weight w: f32[8, 7]
    weight v: f32[8, 7]
    weight u: f32[5, 6]
    h = x @ w
    scores = h @ transpose(x @ v, perm=(0, 2, 1))
    return relu(scores @ u)
"""


def compiled(source: str) -> Program:
    settings = {"write-weights": {"computed_products": "device"}}
    program: Program = tpucc.compile_source(source, target="tiny", settings=settings).program.value
    return program


@each([(8, 2, 8), (8, 4, 16), (6, 3, 9), (12, 2, 4), (3, 3, 6), (4, 1, 8)])
def test_the_used_cells_of_a_grouped_convolution_are_those_on_its_diagonal(channels: int, groups: int, filters: int) -> None:
    """Eight channels are two tiles of `tiny`, one below the other: which of them are of one position only the size of a group says."""
    program = compiled(GROUPED.format(channels=channels, own=channels // groups, filters=filters, groups=groups))
    [layer], mxu = [layer for layer in program.layers if layer.tile_fills], program.target.mxu
    grid = tile_grid(layer, mxu)
    laid = np.kron(np.eye(groups, dtype=np.int64), np.ones((channels // groups, filters // groups), np.int64))
    blocks = [laid[k : k + mxu, n : n + mxu].sum() for _ in range(4) for k in range(0, channels, mxu) for n in range(0, filters, mxu)]
    assert grid.used.tolist() == blocks
    assert (grid.groups, grid.matrices) == (groups, 1)
    assert grid.used.sum() == layer.weights[0] * layer.weights[1]
    assert decode(encode(program), "p") == program
    assert assemble(disassemble(program), "p.asm") == program
    full = 100 * int(grid.used.sum()) / (len(layer.tile_fills) * mxu**2)
    assert f"{full:.0f} % full" in tiles_svg(program)
    svg, held = tiles_svg(program), sum(count > 0 for count in blocks)
    assert svg.count('class="k-weights"') == held + 1, "those with weights, and the legend"
    said = " ".join(re.sub("<[^>]+>", " ", svg).split())
    assert (f"{held} of them loaded, the others are zeros" in said) == (held < len(blocks))
    assert (f"{groups} groups with zeros between them" in said) == (groups > 1)


def test_equal_tiles_at_two_places_have_the_weights_of_the_fuller_one() -> None:
    """A tile that ends inside and one of the same weights that goes on, in zeros, are one in weight memory."""
    program = chain_program("same", 8, [512, 256])
    instructions = program.instructions.copy()
    instructions["index"][instructions["opcode"] == Opcode.READ_WEIGHTS] = 0
    useful = []
    for fills in (((0, 256, 256), (0, 256, 256)), ((0, 256, 256), (0, 4, 4)), ((0, 4, 4), (0, 4, 4))):
        layers = (replace(program.layers[0], tile_fills=fills, macs=10**12),)
        changed = replace(program, layers=layers, instructions=instructions)
        useful.append(stats(changed, time_program(changed))["breakdown"]["useful_macs"])
    assert useful[0] == useful[1] == pytest.approx(4096 * useful[2]) != 0


def test_the_tiles_of_a_stack_of_matrices_are_apart() -> None:
    """Three matrices of 7 × 5, each in two rows of two tiles."""
    program = compiled(STACKED)
    [layer] = [layer for layer in program.layers if layer.choice.startswith("for each of 3 products: ")]
    grid = tile_grid(layer, program.target.mxu)
    assert (grid.matrices, grid.groups) == (3, 1)
    places = [*zip(*(column.tolist() for column in (grid.matrix, grid.row, grid.column, grid.first_input, grid.used)), strict=True)]
    assert places[:5] == [(0, 0, 0, 0, 16), (0, 0, 1, 0, 4), (0, 1, 0, 4, 12), (0, 1, 1, 4, 3), (1, 0, 0, 0, 16)]
    assert places[-1] == (2, 1, 1, 4, 3)
    listing = disassemble(program)
    comments = [line.partition(" ; ")[2] for line in listing.splitlines() if line.startswith(".fills") and ";" in line]
    assert comments == ["matrices 1–2 of 3", "matrix 3 of 3"]
    assert assemble(listing, "p.asm") == program
    svg = tiles_svg(program)
    assert "12 tiles, 55 % full, 3 matrices, one below the other" in svg
    assert "matrix 2 of 3 · rows 4–6 and columns 0–3 · 75 % full" in svg
