"""The table of number formats: the facts of each row by hand, rules for rows that there are none of yet, and rows that say too little."""

from __future__ import annotations

import shutil
import subprocess
import sys
from math import floor
from pathlib import Path

import numpy as np
import pytest

import tpucc
from tests.support.cases import one_of
from tests.support.worked import UNFINISHED
from tpucc.ir.dtypes import BY_BITS, DEVICE_FORMATS, F32, FORMATS, I8, I16, I32, OF_NUMPY, IntegerFormat
from tpucc.layers.kinds import Requantise
from tpucc.machines.v1 import Flag
from tpucc.machines.v1.formats import encoding_of, format_of
from tpucc.machines.v1.machine import parameter_block_dtype
from tpucc.numerics import affine_parameters, interpolate, quantise

COARSE = IntegerFormat("i16c", np.dtype("<i2"), symmetric=False, table_step=1024, makes_room=False)
"""A format of sixteen bits with a zero point, and tables of few entries."""
ROW = 'I8 = IntegerFormat("i8"'


def test_the_facts_of_int8_and_int16() -> None:
    assert (I8.low, I8.high, I8.largest, I8.bits, I8.bytes_per_value) == (-128, 127, 128, 8, 1)
    assert (I16.low, I16.high, I16.largest, I16.bits, I16.bytes_per_value) == (-32768, 32767, 32768, 16, 2)
    assert (I8.table_entries, I8.has_exact_tables, I16.table_entries, I16.has_exact_tables) == (256, True, 257, False)
    assert I8.table_inputs.tolist() == list(range(-128, 128))
    assert I16.table_inputs.tolist() == list(range(-32768, 32769, 256))
    assert (I8.weights, I8.accumulator, I16.weights, I16.accumulator) == ("i8", "i32", "i8", "i32")
    assert (I8.symmetric, I16.symmetric, I8.makes_room, I16.makes_room) == (False, True, False, True)


def test_the_tables_say_the_same() -> None:
    assert list(FORMATS.values()) == [F32, I32, I8, I16]
    assert list(DEVICE_FORMATS.values()) == [I8, I16]
    assert dict(BY_BITS) == {8: I8, 16: I16}
    assert all(OF_NUMPY[np.dtype(format.numpy)] is format for format in FORMATS.values())
    for format in DEVICE_FORMATS.values():
        encoding = encoding_of(format)
        assert format_of(encoding.flag | Flag.UNSIGNED | Flag.SWITCH) is format
        assert parameter_block_dtype(4)[encoding.table].subdtype == (format.numpy, (format.table_entries,))


def test_an_epilogue_ends_where_the_format_does_unless_it_says_so() -> None:
    assert Requantise().bounds(I16) == (-32768, 32767)
    assert Requantise(low=-3).bounds(I8) == (-3, 127)
    assert Requantise(high=0).bounds(I16) == (-32768, 0)


def test_interpolation_takes_the_steps_of_the_format() -> None:
    points = np.random.default_rng(3).integers(-32768, 32768, COARSE.table_entries).astype(np.int16)
    values = np.arange(-32768, 32768, 7).astype(np.int16)
    assert COARSE.table_entries == 65
    for q, found in zip(values.tolist(), interpolate(values, points, COARSE).tolist(), strict=True):
        place, part = divmod(q + 32768, 1024)
        left, right = int(points[place]), int(points[place + 1])
        assert found == floor(left + (right - left) * part / 1024 + 0.5)


def test_a_format_that_is_not_symmetric_uses_all_its_integers() -> None:
    scale, zero = affine_parameters(0.0, 4.0, COARSE)
    assert zero == COARSE.low
    assert quantise(np.array([0.0, 4.0]), scale, zero, COARSE).tolist() == [-32768, 32767]
    assert affine_parameters(0.0, 4.0, I16)[1] == 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("row", "message"),
    one_of(
        3,
        [
            ('I64 = IntegerFormat("i64", np.dtype("<i8"), symmetric=True, table_step=1, makes_room=False)', "instructions know i8, i16"),
            ('I64 = IntegerFormat("i64", np.dtype("<i8"), True, 1, False, weights="i4")', "no format is named i4"),
            ('I64 = IntegerFormat("i64", np.dtype("<i2"), symmetric=True, table_step=1, makes_room=False)', "one NumPy type"),
        ],
    ),
)
def test_a_row_of_which_others_know_nothing_fails_at_import(tmp_path: Path, row: str, message: str) -> None:
    """The package is copied, and one row added to its table."""
    package = tmp_path / "tpucc"
    shutil.copytree(Path(tpucc.__file__).parent, package, ignore=UNFINISHED)
    table = package / "ir" / "dtypes.py"
    text = table.read_text()
    assert ROW in text
    table.write_text(text.replace(ROW, f"{row}\n{ROW}").replace("(F32, I32, I8, I16)", "(F32, I32, I8, I16, I64)"))
    call = [sys.executable, "-c", "import tpucc.api"]
    result = subprocess.run(call, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert message in result.stderr
