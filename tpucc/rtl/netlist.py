"""A circuit as plain values, and back: somebody else's circuit travels from their process to ours as a list of gates.

`netlist` makes the list of a function of wires. `placed` puts the gates of a list into the present block of PyRTL: it executes nothing of
whoever made the list, and takes no memory, no input that wasn't given and no loop.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from types import ModuleType
from typing import Any

import pyrtl
from pyrtl import Block, Const, Input, LogicNet, Output, Register, WireVector

MOST = 20_000
"""Gates, and wires, of a circuit that is placed."""
JOINED, WIDEST_GATE = 40_000, 1_000
"""Operands of all gates of a circuit, a selected bit as one of them, and of one gate: a simulation makes Python of each."""
WIDEST = 4096
"""Bits of a wire."""
GATES = frozenset("w~&|^n+-*<>=xcsr")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,80}", re.ASCII)
"""A name that is kept: PyRTL's simulation makes Python of names."""


@dataclass(frozen=True, slots=True)
class Port:
    """Where a circuit gets a wire: an input of this name."""

    name: str
    bits: int


def netlist(module: ModuleType, function: str, arguments: Any) -> dict[str, Any]:
    """The gates that a function of a module makes. Each `Port` in its arguments is an input, each wire that it returns an output.

    Raises what the function raises; `ValueError` for a result that isn't made of wires of this circuit; PyRTL's errors for a circuit that
    isn't one: with a wire that nothing drives, or with a loop.
    """
    block = Block()
    with pyrtl.set_working_block(block, no_sanity_check=True):
        result = getattr(module, function)(*_with_inputs(arguments))
        if result is None:
            raise ValueError(f"{function} returns nothing: is there a `return`?")
        for name, wire in _leaves("", result):
            if not isinstance(wire, WireVector) or wire not in block.wirevector_set:
                what = "None, " if wire is None else ""
                raise ValueError(f"{name or 'the result'} of {function} is {what}no wire of this circuit")
            output = Output(len(wire), f"output {name}")
            output <<= wire
    if len(block.logic) > MOST:
        raise ValueError(f"{function} makes {len(block.logic):,} gates, and at most {MOST:,} are taken")
    if block.logic_subset("m@"):
        raise ValueError(f"{function} makes a memory (`MemBlock`), which isn't taken")
    block.sanity_check()
    list(block)  # looks for loops
    wires = sorted(block.wirevector_set, key=lambda wire: wire.name)
    numbers = {wire: number for number, wire in enumerate(wires)}
    return {
        "wires": [[type(wire).__name__, wire.name, len(wire), _value(wire)] for wire in wires],
        "gates": [
            [net.op, list(net.op_param or ()), [numbers[wire] for wire in net.args], [numbers[wire] for wire in net.dests]]
            for net in block.logic
        ],
    }


def _value(wire: WireVector) -> int:
    return int(wire.val if isinstance(wire, Const) else getattr(wire, "reset_value", None) or 0)


def _with_inputs(value: Any) -> Any:
    """A value with an input in the place of each port."""
    if isinstance(value, Port):
        return Input(value.bits, value.name)
    if isinstance(value, list | tuple):
        return type(value)(map(_with_inputs, value))
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _with_inputs(getattr(value, field.name)) for field in fields(value)})
    return value


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """What a result is made of, with names such as `right.x` and `3`."""
    if is_dataclass(value) and not isinstance(value, type):
        parts = [(field.name, getattr(value, field.name)) for field in fields(value)]
    elif isinstance(value, list | tuple):
        parts = [(str(number), part) for number, part in enumerate(value)]
    else:
        yield name, value
        return
    for inner, part in parts:
        yield from _leaves(f"{name}.{inner}" if name else inner, part)


def placed(circuit: Mapping[str, Any], given: Mapping[str, WireVector], prefix: str = "") -> dict[str, WireVector]:
    """Puts a circuit into the present block, its inputs driven by the wires `given` by name; returns its outputs by name. Registers and
    wires get the names that they had, after `prefix`, and others where these are taken or no plain names.

    Raises `ValueError`, `TypeError`, `KeyError` or PyRTL's errors for values that are no circuit.
    """
    block, found, outputs = pyrtl.working_block(), list[WireVector](), dict[str, WireVector]()
    wires, gates = circuit["wires"], circuit["gates"]
    _require_small(wires, gates)
    for kind, name, bits, value in wires:
        if not (type(bits) is type(value) is int and 0 < bits <= WIDEST and 0 <= value < 1 << bits):
            raise ValueError(f"the wire {str(name)[:60]} has {str(bits)[:20]} bits")
        own = f"{prefix}{name}" if NAME.fullmatch(name) and f"{prefix}{name}" not in block.wirevector_by_name else ""
        if kind == "Input":
            wire = given.get(name)
            if wire is None or len(wire) != bits:
                raise ValueError(f"the input {str(name)[:60]} isn't one that was given")
        elif kind == "Output":
            wire = outputs[name.removeprefix("output ")] = WireVector(bits)
        elif kind == "Const":
            wire = Const(value, bits)
        else:
            wire = Register(bits, own, reset_value=value) if kind == "Register" else WireVector(bits, own)
        found.append(wire)
    for op, parameters, args, dests in gates:
        if op not in GATES or min((*args, *dests), default=0) < 0 or any(wires[number][0] == "Input" for number in dests):
            raise ValueError(f"{str(op)[:20]} is no gate")
        net = LogicNet(op, tuple(parameters) if op == "s" else None, tuple(found[n] for n in args), tuple(found[n] for n in dests))
        block.add_net(net)
    return outputs


def _require_small(wires: Sequence[Any], gates: Sequence[Any]) -> None:
    """Raises `ValueError` for a circuit that a simulation would need too much memory for."""
    if max(len(wires), len(gates)) > MOST:
        raise ValueError(f"the circuit has {len(wires):,} wires and {len(gates):,} gates, and at most {MOST:,} are taken")
    joined = [len(parameters) + len(args) for _, parameters, args, _ in gates]
    if sum(joined) > JOINED or max(joined, default=0) > WIDEST_GATE:
        most = f"at most {JOINED:,} and {WIDEST_GATE:,} are taken"
        raise ValueError(f"the gates select or join {sum(joined):,} bits and wires, and one of them {max(joined):,}; {most}")
