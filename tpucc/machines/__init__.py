"""The machines that tpucc has. `DEFAULT` is the machine of a program of which nobody says for which machine it is."""

from __future__ import annotations

from tpucc.machines.v1 import V1

DEFAULT = V1
