"""v1's instructions, under the names by which rooms know them that compile for v1: the compiler, the pictures and the labs."""

from __future__ import annotations

from tpucc.machine.instruction import Instruction, OperandSpec, Spec
from tpucc.machine.record import RECORD, Records
from tpucc.machines.v1.functions import FUNCTIONS, Function
from tpucc.machines.v1.instructions import SPECS, Opcode
from tpucc.machines.v1.machine import V1
from tpucc.machines.v1.places import UNITS, Engine, Flag, Place

__all__ = ["ENGINE_OF", "FUNCTIONS", "RECORD", "SPECS", "UNITS", "Engine", "Flag", "Function", "Instruction", "Opcode", "OperandSpec"]
__all__ += ["ROW_ENGINES", "Place", "Records", "Spec", "read_instruction", "record"]

ENGINE_OF = V1.engine_of
"""The engine of each opcode, for whole columns at once."""
ROW_ENGINES = V1.row_units
"""Engines that touch rows."""
read_instruction, record = V1.read, V1.record
