"""Operands that are lists, and operands that are one number: a file in which they have other axes is damaged.

Source: the texts of ONNX's operators. ONNX Runtime refuses most of them, too. It takes a single number for the list of one axis that
Unsqueeze adds, and a list of one for a number.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpucc.interop.onnx.reading.checks.operands import Operands
from tpucc.interop.onnx.reading.files.problems import ELSEWHERE, Unsupported
from tpucc.interop.onnx.reading.files.tensors import MAX_RANK

REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare"
LISTS: Mapping[str, Mapping[int, str]] = {
    "ConstantOfShape": {0: "the sizes"},
    "Expand": {1: "the sizes"},
    "OneHot": {2: "the values"},
    "Pad": {1: "the pads", 3: "the axes"},
    "Reshape": {1: "the sizes"},
    "Resize": {2: "the scales", 3: "the sizes"},
    "ReverseSequence": {1: "the lengths"},
    "Slice": {1: "the starts", 2: "the ends", 3: "the axes", 4: "the steps"},
    "Split": {1: "the sizes"},
    "Squeeze": {1: "the axes"},
    "Tile": {1: "the repeats"},
    "Unsqueeze": {1: "the axes"},
    "Upsample": {1: "the scales"},
    **{operator: {1: "the axes"} for operator in REDUCTIONS.split()},
}
NUMBERS: Mapping[str, Mapping[int, str]] = {
    "Clip": {1: "the least value", 2: "the largest value"},
    "CumSum": {1: "the axis"},
    "OneHot": {1: "the depth"},
    "Pad": {2: "the value"},
    "Range": {0: "the start", 1: "the limit", 2: "the step"},
    "Trilu": {1: "the diagonal"},
}
"""By operator the places of such operands, and what they are."""


def require_lists(o: Operands) -> None:
    """Raises `ProgramError` E1001 for operands with other axes."""
    lists = {1: "the scales"} if o.node.kind == "Resize" and o.opset < 11 else LISTS.get(o.node.kind, {})
    for index, what in lists.items():
        shape = o.shape(index)
        if o.has(index) and len(shape) != 1 and not (o.node.kind == "Unsqueeze" and shape == ()):
            o.refuse(f"{what} have the shape {list(shape)}, and ONNX has a list there")
    for index, what in NUMBERS.get(o.node.kind, {}).items():
        if o.has(index) and (shape := o.shape(index)) not in ((), (1,)):
            o.refuse(f"{what} has the shape {list(shape)}, and ONNX has one number there")


def require_rank(o: Operands) -> None:
    """Raises `Unsupported` for a list that makes a result of more axes than a tensor has here."""
    if (count := _axes_of_result(o)) > MAX_RANK:
        raise Unsupported(f"its result has {count:,} axes; the limit is {MAX_RANK}", ELSEWHERE)


def _axes_of_result(o: Operands) -> int:
    """How many axes a result has that has as many as a list says."""
    if o.node.kind == "Unsqueeze":
        return len(o.shape(0)) + (sum(o.shape(1)) if o.has(1) else len(o.node.attributes.get("axes", ())))
    at = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}.get(o.node.kind)
    return 0 if at is None else sum(o.shape(at))
