"""The typed inputs of `model` and `train`."""

from __future__ import annotations

from tpucc.frontend import ast
from tpucc.frontend.frame import Frame
from tpucc.frontend.problem import Problem
from tpucc.frontend.types import tensor_type
from tpucc.frontend.values import POISON, Poison
from tpucc.ir.node import NoAttributes


def declare_inputs(inputs: tuple[ast.Input, ...], frame: Frame) -> None:
    """Makes each input a node of the graph and a variable of the frame; what is wrong is reported."""
    for item in inputs:
        name = item.name
        if name.text in frame.variables:
            frame.report(Problem("E0204", f"two inputs are named {name.text}", name.span))
            continue
        type_ = tensor_type(frame, item.type)
        if isinstance(type_, Poison):
            frame.variables[name.text] = POISON
        else:
            frame.variables[name.text] = frame.add("input", (), NoAttributes(), type_, item.span, (name.text,))
