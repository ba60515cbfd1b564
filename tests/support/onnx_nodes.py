"""The ONNX package's own tests of single operators, and what tpucc makes of each.

python tests/support/onnx_nodes.py            # prints docs/reference/onnx-tests.md
python tests/support/onnx_nodes.py --write    # writes it
"""

from __future__ import annotations

import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import tpucc
from tpucc.data.weights import bind_arrays
from tpucc.interop.onnx.reading import Imported
from tpucc.interop.onnx.reading.files.decoding import decoded
from tpucc.numerics import AnyArray
from tpucc.ops.evaluate import evaluate

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "onnx-tests.md"
OTHERS = {
    "bf16": "the expected values are rounded to bfloat16, and tpucc computes in float32",
    "qk_matmul": "the expected values are infinite where a mask is, and tpucc's masks are finite",
    "affine_grid_3d": "the expected values are of several data sets in one, of which the model's inputs are the last",
    **dict.fromkeys(
        ("quantizelinear", "qlinear", "matmulinteger", "convinteger"),
        "they give and take integers, where tpucc has the real values; tpucc's own tests compare these operators with ONNX Runtime",
    ),
    "empty_set": "tensors without values, which tpucc doesn't have",
    "shape_start_greater_than_end": "tensors without values, which tpucc doesn't have",
    "spacetodepth_crd_mode": "an attribute that the ONNX versions which tpucc knows don't have",
    "training_dropout": "random numbers: dropout changes nothing in tpucc, as outside of training",
}
"""Parts of the names of tests that expect other values, and why."""
NO_TENSOR = "sequences, optional values, and numbers of formats that NumPy doesn't have"
"""Operands that can't be given."""


@dataclass(frozen=True)
class Outcome:
    """`kind` is passed, wrong, other or refused; `reason` says why, of the last two: the error of the file with all operands constant but
    the first."""

    name: str
    ops: frozenset[str]
    kind: str
    reason: str = ""


def cases() -> list[Any]:
    """Each test once. Making them takes long."""
    from onnx.backend.test.case import node

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[Any] = node.collect_testcases(None)
    return list({case.name: case for case in found}.values())


def outcome(case: Any) -> Outcome:
    ops = frozenset(node.op_type for node in case.model.graph.node)
    for part, reason in OTHERS.items():
        if part in case.name:
            return Outcome(case.name, ops, "other", reason)
    given, wanted = case.data_sets[0]
    if not all(isinstance(array, np.ndarray | np.generic) for array in given):
        return Outcome(case.name, ops, "other", NO_TENSOR)
    refused = ""
    for constant in (False, True):
        try:
            alike = _alike(case.model, [np.asarray(array) for array in given], wanted, constant)
        except (tpucc.CompileError, tpucc.InputError) as error:
            refused = f"{error.diagnostics[0].code} {error.diagnostics[0].message.removeprefix('m: ')}"
        else:
            return Outcome(case.name, ops, "passed" if alike else "wrong")
    return Outcome(case.name, ops, "refused", refused)


def _alike(model: Any, arrays: Sequence[AnyArray], wanted: Sequence[Any], constant: bool) -> bool:
    """Whether the values are those that the test expects: with all operands given, or with all but the first as constants of the file."""
    from onnx import ModelProto, numpy_helper

    changed, given = ModelProto(), []
    changed.CopyFrom(model)
    for index, (value, array) in enumerate(zip(model.graph.input, arrays, strict=False)):
        if constant and index:
            changed.graph.initializer.append(numpy_helper.from_array(array, value.name))
        else:
            given.append(array)
    read = Imported("m", "m", decoded(changed.SerializeToString(), None), "nchw")
    made = read.built({name: size or 1 for name, size in read.symbols.items()})
    inputs = {node.name: array.astype(node.type.numpy) for node, array in zip(made.graph.inputs, given, strict=True)}
    found = evaluate(bind_arrays(made.graph, made.weights), inputs)
    return all(_close(found[output.node], value) for output, value in zip(made.graph.outputs, wanted, strict=True))


def _close(value: AnyArray, wanted: Any) -> bool:
    expected = np.asarray(wanted).astype(np.float64)
    return value.shape == expected.shape and np.allclose(value.astype(np.float64), expected, rtol=2e-3, atol=1e-4, equal_nan=True)


def page(found: Sequence[Outcome]) -> str:
    import onnx

    kinds = Counter(one.kind for one in found)
    missing, forms = _refused(found)
    other = Counter(one.reason for one in found if one.kind == "other")
    return "\n".join(
        [
            "<!-- made by tests/support/onnx_nodes.py; don't edit -->\n",
            "# The ONNX package's own tests\n",
            f"The package `onnx` {onnx.__version__} has {len(found):,} tests of single operators, with inputs and expected",
            "values. This is what tpucc makes of each. A test passes if its values in float32 are the expected ones, within 0.2 % and",
            "0.0001. Each is tried with all operands as inputs, and if that is refused, with all but the first as constants of the file.",
            "`python tests/support/onnx_nodes.py --write` makes this page.\n",
            *_table("outcome", {"read, and passed": kinds["passed"], "read, and another value": kinds["wrong"]}),
            f"| left out, for the reasons below | {kinds['other']:,} |",
            f"| refused with a message (E1005 to E1007, E0454) | {kinds['refused']:,} |",
            "\n## Left out\n",
            *_table("reason", dict(other.most_common())),
            "\n## Operators that tpucc doesn't have\n",
            "The number of tests stands behind each, without those of its parts. Some of these operators are read of constants.\n",
            f"{_counted(missing)}.",
            "\n## Forms of operators that are refused\n",
            "[Operators of ONNX](onnx.md) has all that are refused; these have tests. … stands for numbers and names.\n",
            *_table("message", dict(sorted(forms.items()))),
            "",
        ]
    )


def _refused(found: Sequence[Outcome]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """How many tests each operator has that tpucc lacks, and each other message."""
    missing: Counter[str] = Counter()
    forms: Counter[str] = Counter()
    for one in found:
        if one.kind == "refused":
            code, _, message = re.sub(r" \(\d+ nodes?: .*", "", one.reason).partition(" ")
            lacking = re.fullmatch(r"tpucc has nothing for the operator (\S+)", message)
            if lacking:
                missing[lacking[1]] += 1
            else:
                forms[f"{_general(message)} ({code})"] += 1
    return missing, forms


def _general(message: str) -> str:
    """Without numbers, shapes and the names of values."""
    message = re.sub(r"^the (input|output|tensor) \S+", r"the \1 …", message)
    message = re.sub(r"^\S+ (is a sequence)", r"… \1", message)
    return re.sub(r"'[^']*'|\[[\d, ]*\]|(?<![\w.])-?\d[\d,.]*(?!\w)", "…", message)


def _counted(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(numbers.items()))


def _table(head: str, rows: Mapping[str, int]) -> Iterator[str]:
    yield f"| {head} | tests |\n|---|--:|"
    for words, count in rows.items():
        yield f"| {words} | {count:,} |"


def main(arguments: list[str]) -> int:
    made = page([outcome(case) for case in cases()])
    if "--write" in arguments:
        PAGE.write_text(made, "utf-8")
    else:
        print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
