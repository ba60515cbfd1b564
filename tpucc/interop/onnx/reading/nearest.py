"""What can't be read: why, what is said of it, and what does instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tpucc.diagnostics import Diagnostic, counted, did_you_mean, listed
from tpucc.interop.onnx.reading.building.values import Static, Value
from tpucc.interop.onnx.reading.files.checker import versions
from tpucc.interop.onnx.reading.files.model import OPSETS, OPTIMISED, OnnxNode
from tpucc.interop.onnx.reading.files.problems import Unsupported, named, shortened
from tpucc.interop.onnx.reading.operators.rows import ROWS

SCIKIT_LEARN = (
    "Of scikit-learn tpucc reads linear models, as LogisticRegression, MLPClassifier and MLPRegressor, and before them StandardScaler, "
    "MinMaxScaler, MaxAbsScaler, Normalizer, PCA and others"
)
"""Which models come across, where one doesn't."""
LEFT = "tf2onnx leaves operators of TensorFlow in a file where it has none of ONNX for them, and no runtime reads it"
NEAREST: Mapping[str, str] = {
    "ai.onnx.ml.SVMClassifier": "LinearSVC is read, which has no kernel",
    "ai.onnx.ml.SVMRegressor": "LinearSVR is read, which has no kernel",
    **dict.fromkeys(
        ("ai.onnx.ml.TreeEnsemble", "ai.onnx.ml.TreeEnsembleClassifier", "ai.onnx.ml.TreeEnsembleRegressor"),
        "tpucc has no trees: a network of the same data, as MLPClassifier, is read",
    ),
    **dict.fromkeys(
        ("Bernoulli", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
        "export the model for inference: model.eval()",
    ),
    **dict.fromkeys(("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"), "export the model without its loss"),
    "ScatterND": (
        "Where with a constant mask sets fixed places. PyTorch's older exporter writes it for x[…] = …, as of a causal mask: export with "
        "dynamo=True, or without the mask that is set there, and write such steps of a recurrence as torch.stack"
    ),
    "Attention": "MatMul, Softmax and MatMul are read: export with opset 20",
    "CenterCropPad": "Slice and Pad with constant places are read",
    "Compress": "Gather along an axis, by constants, is read",
    "Cos": "of constants, as of positions, it is computed while reading; of numbers of positions, Gather takes rows of a table of cosines",
    "Cosh": "Exp, Neg, Add and Mul are read: (exp(x) + exp(-x)) / 2 is the same",
    "CumSum": "a product with a triangular matrix of ones is the same sum",
    "Erfc": f"{LEFT}: gelu with approximate=True has operators of ONNX, and so has Keras's export with the backend PyTorch",
    "Expm1": f"{LEFT}: the same as exp(x) - 1 has operators of ONNX, and elu in the place of celu",
    "GatherND": "Gather along an axis, by constants, is read",
    "GlobalLpPool": "ReduceL2 over the axes of the pixels is the same, for p = 2",
    "If": "export the branch that is taken: both may not be in one network",
    "Loop": "write its steps out, as exporters do with Python's loops: a loop is read if constants say how many steps it has",
    "Sin": "of constants, as of positions, it is computed while reading; of numbers of positions, Gather takes rows of a table of sines",
    "Shrink": "Where and comparisons choose between x - bias, x + bias and 0",
    "Sinh": "Exp, Neg, Sub and Mul are read: (exp(x) - exp(-x)) / 2 is the same",
    "SplitToSequence": "Split has its parts as results",
    "Multinomial": "end the model before it: it gives the probabilities, and your own program draws",
    "MaxUnpool": "Resize or ConvTranspose enlarge an image",
    "NonMaxSuppression": "end the model before it, and select boxes in your own program",
    "NonZero": "tpucc's shapes are static: multiply by a mask instead",
    "RoiAlign": "Slice and Resize with constant places are read; for others, end the model before it",
    "RotaryEmbedding": "products with constant cosines and sines, Split and Concat are read: export with opset 22",
    "Scan": "write its steps out, as exporters do with Python's loops",
    "StatefulPartitionedCall": f"{LEFT}, as convolutions in groups: Keras's export with the backend PyTorch writes them in ONNX",
    "SwiGLU": "Split, Sigmoid and Mul are read",
    "TopK": "ArgMax gives the place of the largest value, ReduceMax the value; for more of them, end the model before TopK",
    "Unique": "tpucc's shapes are static: end the model before it",
}
"""By the operator, where something else does."""
WITHOUT = "make the model without it, or end the model before it and compute the rest in your own program"
"""What to do about operators of ONNX that nothing else does for."""
ALIKE = 0.65
"""The share of letters that an unknown name has in common with that of an operator, where this one may be meant."""
SCIKIT_LEARNS = "ai.onnx.ml"
"""The domain of operators that scikit-learn's models are written with."""


def instead_of(node: OnnxNode) -> str:
    """What does instead of an operator that tpucc doesn't read; empty where nothing does."""
    if node.domain == OPTIMISED:
        return "ONNX Runtime's optimizer and its quantiser write such operators: import the file that they were given"
    if node.domain == SCIKIT_LEARNS:
        return NEAREST.get(node.kind, WITHOUT)
    if node.domain:
        return f"ONNX's own operators are read, not those of {named(node.domain)}: export the model without them"
    if node.op in NEAREST or (node.op, "") in versions():
        return NEAREST.get(node.op, WITHOUT)
    return (
        did_you_mean(node.op, [name for name, row in ROWS.items() if row.build is not None], ALIKE)
        or f"ONNX's opsets up to {OPSETS.stop - 1} have no such operator, so no runtime reads the file"
    )


SHOWN = 8
"""The most values of a constant that a message has."""
NAMED = 6
"""Nodes that a message names."""
STRUCTURE = frozenset({"If", "Loop"})
"""Operators that are taken apart while a file is read."""


def hindrance(node: OnnxNode, is_computed: bool) -> Unsupported | None:
    """Why a node can't be read, whatever its operands are but for whether the network computes one of them."""
    if node.kind in STRUCTURE:
        return None
    if (row := ROWS.get(node.kind)) is None:
        return Unsupported("", instead_of(node))
    if row.build is not None:
        return None
    return Unsupported("", NEAREST.get(node.op, "of constants it is read, and computed while reading")) if is_computed else None


def misfit(node: OnnxNode, operands: Sequence[Value | None]) -> str:
    """What a rule was given that it can't be applied to: the shapes, short lists of integers, and the attributes that are numbers or
    words."""
    given = {name: value for name, value in node.attributes.items() if isinstance(value, int | float | str | tuple)}
    words = listed([f"{named(name)} = {shortened(list(value) if isinstance(value, tuple) else value)}" for name, value in given.items()])
    shapes = listed([_shown(value) for value in operands]) or "none"
    return f"operands of the shapes {shapes} don't fit each other, or the operator{f' with {words}' if words else ''}"


def _shown(value: Value | None) -> str:
    """An operand in a message."""
    if value is None:
        return "nothing"
    known = (
        shortened(value.array.tolist())
        if isinstance(value, Static) and value.array.dtype.kind in "iu" and 0 < value.array.size <= SHOWN
        else ""
    )
    return f"{list(value.shape)}{f' with {known}' if known else ''}"


def problem(op: str, message: str, help: str, nodes: list[OnnxNode]) -> Diagnostic:
    """One message for all nodes of the file that have one problem."""
    nodes = list({id(node.of or node): node for node in nodes}.values())
    shown = listed([node.title for node in nodes[:NAMED]] + [f"{len(nodes) - NAMED} more"] * (len(nodes) > NAMED))
    where = f"{counted(len(nodes), 'node')}: {shown}"
    if not message:
        return Diagnostic("E1006", f"tpucc has nothing for the operator {op} ({where})", help=(help,))
    return Diagnostic("E1007", f"{op}: {message} ({where})", help=(help,))
