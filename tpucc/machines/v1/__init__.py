"""TPU v1 (Jouppi et al., ISCA 2017): its tables, each in a file, and the machine of these tables."""

from __future__ import annotations

from tpucc.machines.v1.functions import FUNCTIONS, Function
from tpucc.machines.v1.instructions import SPECS, Opcode
from tpucc.machines.v1.machine import V1
from tpucc.machines.v1.places import UNITS, Engine, Flag, Place

__all__ = ["FUNCTIONS", "SPECS", "UNITS", "V1", "Engine", "Flag", "Function", "Opcode", "Place"]
