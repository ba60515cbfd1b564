"""The machines that tpucc has, one a package of this one. `DEFAULT` is the machine where none is named."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

from tpucc.machine.machine import Machine
from tpucc.machines.v1 import V1
from tpucc.target import Target

DEFAULT = V1
_FOUND: list[Machine] = [import_module(f"{__name__}.{each.name}.machine").MACHINE for each in iter_modules(__path__)]
MACHINES = {machine.name: machine for machine in _FOUND}


def machine_for(target: Target) -> Machine:
    """The machine that programs for a target are of; `DEFAULT` where none can be."""
    return next((machine for machine in MACHINES.values() if not machine.obstacle(target)), DEFAULT)


def machine_named(name: str) -> Machine:
    return MACHINES[name]


def _by_name(machine: Machine) -> tuple[Callable[[str], Machine], tuple[str]]:
    """A machine goes to another process by its name: its meanings are functions, which can't be sent."""
    if MACHINES.get(machine.name) is not machine:
        raise TypeError(f"{machine.name} is no machine of tpucc's, and can't be sent to another process")
    return machine_named, (machine.name,)


copyreg.pickle(Machine, _by_name)
