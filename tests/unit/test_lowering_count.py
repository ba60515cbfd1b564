"""The limit of instructions: they are counted before any is made. `test_lowering_maps` counts each of its graphs, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.device_graphs import TINY, assert_counted, chain, is_counted
from tests.unit.test_lowering_overlap import ROOMY, built, maps
from tpucc.diagnostics import LimitError, Source
from tpucc.driver import compile_source
from tpucc.layers.partition import partition
from tpucc.lowering.lower import drafts_of
from tpucc.lowering.tileprogram import TileProgram
from tpucc.machines.v1 import Opcode
from tpucc.options import options_of

DEPTHWISE = """weights random(seed=0)
model m(x: f32[2, 6, 7, 5] in [-1.0, 1.0]):
    weight k: f32[3, 3, 1, 5]
    return relu(conv2d(x, k, groups=5, padding="same"))
"""
PRODUCTS = """weights random(seed=0)
model m(x: f32[2, 6, 8] in [-1.0, 1.0]):
    weight w: f32[8, 8]
    weight v: f32[8, 8]
    return (x @ w) @ transpose(x @ v, (0, 2, 1)) @ x
"""
SETTINGS = {"depthwise": {"unit": "vector"}, "write-weights": {"computed_products": "device"}}


CASES = [(DEPTHWISE, Opcode.POOL, 8), (DEPTHWISE, Opcode.CONVOLVE, 16), (PRODUCTS, Opcode.WRITE_WEIGHTS, 8)]
"""On 16 bits the matrix unit takes the depthwise convolution."""


@each(CASES)
def test_a_model_takes_as_many_instructions_as_are_counted(text: str, opcode: Opcode, bits: int) -> None:
    options = options_of(target=ROOMY, activation_bits=bits, settings=SETTINGS)
    made = compile_source(Source("m.tpu", text), Path(), options)
    assert made.layers is not None
    parts = partition(made.layers)
    tiles = next(drafts_of(parts.device, ROOMY, segments=parts.segments).programs())
    assert opcode in tiles.instructions["opcode"]
    assert_counted(parts.device, ROOMY, segments=parts.segments)


@each([None, 1, 4])
def test_parts_are_counted_apart(parts: int | None) -> None:
    assert_counted(chain(7, 9, 5), TINY, parts)


@pytest.mark.parametrize("parts", [None, 4])
def test_one_instruction_more_than_the_limit_is_refused(parts: int | None) -> None:
    graph = chain(7, 9, 5)
    number = number_of(next(drafts_of(graph, TINY, parts=parts).programs()))
    assert number_of(next(drafts_of(graph, TINY, parts=parts, most=number).programs())) == number
    with pytest.raises(LimitError, match=f"the program takes {number} instructions or more; at most {number - 1} are made") as error:
        next(drafts_of(graph, TINY, parts=parts, most=number - 1).programs())
    assert error.value.diagnostics[0].code == "E0624"


def test_programs_that_may_be_faster_are_left_out_where_they_take_too_many() -> None:
    graph = built(maps)
    numbers = [number_of(tiles) for tiles in drafts_of(graph, ROOMY).programs()]
    assert max(numbers) > numbers[0]
    kept = [number_of(tiles) for tiles in drafts_of(graph, ROOMY, most=numbers[0]).programs()]
    assert kept == [number for number in numbers if number <= numbers[0]]


def number_of(tiles: TileProgram) -> int:
    """The instructions that the limit counts."""
    return int(np.count_nonzero(is_counted(tiles.instructions)))
