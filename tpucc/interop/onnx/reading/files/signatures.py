"""The signatures of ONNX's operators: how many operands and results a node has, and what its attributes are.

A node of another signature is damaged. Source: ONNX's operator schemas, of all versions of an operator since opset 7 together, and those of
ONNX Runtime for its own operators.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.diagnostics import counted, did_you_mean, listed
from tpucc.interop.onnx.reading.files.model import OPTIMISED, OnnxGraph, OnnxNode, type_name
from tpucc.interop.onnx.reading.files.problems import CHECKER, malformed, named, shortened
from tpucc.interop.onnx.reading.files.tensors import NAMES, TYPES

_TABLE = """
    Abs Ceil Cos Erf Exp Floor GlobalAveragePool GlobalMaxPool HardSwish Identity IsNaN Log Mish Neg NonZero Not Reciprocal Relu
        Round SequenceLength Sigmoid Sign Sin Size Softplus Softsign Sqrt Tanh | 1
    Add And Div Equal Expand Greater GreaterOrEqual Less LessOrEqual MatMul Mul Or PRelu Pow SequenceAt Sub Tile Xor | 2
    ArgMax ArgMin | 1 | axis:i keepdims:i select_last_index:i
    AveragePool | 1 | auto_pad:s ceil_mode:i count_include_pad:i dilations:is kernel_shape:is! pads:is strides:is
    BatchNormalization | 5>5 | epsilon:f momentum:f spatial:i training_mode:i
    Cast | 1 | round_mode:s saturate:i to:i!
    CastLike | 2 | round_mode:s saturate:i
    Celu Elu LeakyRelu Swish ThresholdedRelu | 1 | alpha:f
    Clip | 1-3 | max:f min:f
    Concat | 1- | axis:i!
    ConcatFromSequence | 1 | axis:i! new_axis:i
    Constant | 0 | sparse_value:st value:t value_float:f value_floats:fs value_int:i value_ints:is value_string:s value_strings:ss
    ConstantOfShape | 1 | value:t
    Conv | 2-3 | auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
    ConvInteger | 2-4 | auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
    ConvTranspose | 2-3 | auto_pad:s dilations:is group:i kernel_shape:is output_padding:is output_shape:is pads:is strides:is
    CumSum | 2 | exclusive:i reverse:i
    DepthToSpace SpaceToDepth | 1 | blocksize:i! mode:s
    DequantizeLinear | 2-3 | axis:i block_size:i output_dtype:i
    Dropout | 1-3>2 | ratio:f seed:i
    DynamicQuantizeLinear | 1>3
    Einsum | 1- | equation:s!
    EyeLike | 1 | dtype:i k:i
    Flatten Hardmax LogSoftmax Softmax | 1 | axis:i
    GRU | 3-6>2 | activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i layout:i
        linear_before_reset:i
    Gather GatherElements | 2 | axis:i
    GatherND | 2 | batch_dims:i
    Gelu | 1 | approximate:s
    Gemm | 2-3 | alpha:f beta:f transA:i transB:i
    GroupNormalization | 3 | epsilon:f num_groups:i! stash_type:i
    HardSigmoid | 1 | alpha:f beta:f
    If | 1> | else_branch:g! then_branch:g!
    InstanceNormalization | 3 | epsilon:f
    IsInf | 1 | detect_negative:i detect_positive:i
    LRN | 1 | alpha:f beta:f bias:f size:i!
    LSTM | 3-8>3 | activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i input_forget:i layout:i
    LayerNormalization | 2-3>3 | axis:i epsilon:f stash_type:i
    Loop | 2-> | body:g!
    LpNormalization | 1 | axis:i p:i
    MatMulInteger | 2-4
    Max Mean Min SequenceConstruct Sum | 1-
    MaxPool | 1>2 | auto_pad:s ceil_mode:i dilations:is kernel_shape:is! pads:is storage_order:i strides:is
    MeanVarianceNormalization | 1 | axes:is
    Mod | 2 | fmod:i
    OneHot | 3 | axis:i
    Pad | 1-4 | mode:s pads:is value:f
    QLinearConv | 8-9 | auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is
    QLinearMatMul | 8
    QuantizeLinear | 2-3 | axis:i block_size:i output_dtype:i precision:i saturate:i
    RMSNormalization SimplifiedLayerNormalization | 2 | axis:i epsilon:f stash_type:i
    RNN | 3-6>2 | activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i layout:i
    Range | 3 | stash_type:i
    ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare | 1-2 |
        axes:is keepdims:i noop_with_empty_axes:i
    Reshape | 2 | allowzero:i
    Resize | 1-4 | antialias:i axes:is coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f
        keep_aspect_ratio_policy:s mode:s nearest_mode:s
    ReverseSequence | 2 | batch_axis:i time_axis:i
    Scatter | 3 | axis:i
    ScatterElements | 3 | axis:i reduction:s
    ScatterND | 3 | reduction:s
    Selu | 1 | alpha:f gamma:f
    SequenceEmpty | 0 | dtype:i
    SequenceInsert | 2-3
    Shape | 1 | end:i start:i
    Slice | 1-5 | axes:is ends:is starts:is
    Split | 1-2> | axis:i num_outputs:i split:is
    Squeeze Unsqueeze | 1-2 | axes:is
    Transpose | 1 | perm:is
    Trilu | 1-2 | upper:i
    Upsample | 1-2 | mode:s scales:fs
    Where | 3
    ai.onnx.ml.ArrayFeatureExtractor | 2
    ai.onnx.ml.Binarizer | 1 | threshold:f
    ai.onnx.ml.Imputer | 1 | imputed_value_floats:fs imputed_value_int64s:is replaced_value_float:f replaced_value_int64:i
    ai.onnx.ml.LinearClassifier | 1>2 | classlabels_ints:is classlabels_strings:ss coefficients:fs! intercepts:fs multi_class:i
        post_transform:s
    ai.onnx.ml.LinearRegressor | 1 | coefficients:fs intercepts:fs post_transform:s targets:i
    ai.onnx.ml.Normalizer | 1 | norm:s
    ai.onnx.ml.Scaler | 1 | offset:fs scale:fs
    ai.onnx.ml.ZipMap | 1 | classlabels_int64s:is classlabels_strings:ss
    com.microsoft.DequantizeLinear com.microsoft.QuantizeLinear | 2-3 | axis:i
    com.microsoft.QGemm | 6-9 | alpha:f transA:i transB:i
    com.microsoft.QLinearAdd com.microsoft.QLinearMul | 7-8
    com.microsoft.QLinearAveragePool | 4-5 | auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:is! pads:is strides:is
    com.microsoft.QLinearConcat | 3- | axis:i!
    com.microsoft.QLinearGlobalAveragePool | 5 | channels_last:i
    com.microsoft.QLinearLeakyRelu | 4-5 | alpha:f
    com.microsoft.QLinearSigmoid | 4-5
    com.microsoft.QLinearSoftmax | 5 | axis:i opset:i!
    com.microsoft.QLinearWhere | 9
"""
"""A row: operators | operands, as `2-3`, and the most results where that isn't one, as `1>2` | attributes with their kinds.

A number that is missing is no limit; `!` stands behind an attribute that must be there.
"""
FLAGS = (
    "allowzero antialias batch_axis ceil_mode channels_last count_include_pad detect_negative detect_positive exclude_outside exclusive"
    " fmod input_forget keepdims layout linear_before_reset multi_class new_axis noop_with_empty_axes reverse saturate select_last_index"
    " spatial storage_order time_axis training_mode transA transB upper"
)
"""The attributes that say yes or no, or one of two axes or orders."""
NUMBERS: Mapping[str, tuple[int, ...]] = {"LpNormalization.p": (1, 2), **dict.fromkeys(FLAGS.split(), (0, 1))}
"""The numbers that an attribute may be, of all operators or of one."""
LEAST: Mapping[str, int] = {
    "block_size": 0,
    **dict.fromkeys(("blocksize", "group", "hidden_size", "num_groups", "num_outputs", "size", "targets"), 1),
}
"""The least number that an attribute may be."""
ELEMENTS: Mapping[str, frozenset[int]] = {
    **dict.fromkeys(("dtype", "stash_type"), frozenset({*TYPES, *NAMES})),
    **dict.fromkeys(("output_dtype", "precision"), frozenset({0, *TYPES, *NAMES})),
}
"""The types of elements that an attribute may be, by ONNX's numbers; 0 says none where that is the default."""
WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "DepthToSpace.mode": "DCR CRD",
        "Pad.mode": "constant reflect edge wrap",
        "Resize.mode": "nearest linear cubic",
        "Upsample.mode": "nearest linear",
        "activations": "Affine Elu HardSigmoid LeakyRelu Relu ScaledTanh Sigmoid Softplus Softsign Tanh ThresholdedRelu",
        "approximate": "none tanh",
        "auto_pad": "NOTSET SAME_UPPER SAME_LOWER VALID",
        "coordinate_transformation_mode": "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric"
        " tf_half_pixel_for_nn tf_crop_and_resize",
        "direction": "forward reverse bidirectional",
        "keep_aspect_ratio_policy": "stretch not_larger not_smaller",
        "norm": "MAX L1 L2",
        "nearest_mode": "round_prefer_floor round_prefer_ceil floor ceil",
        "post_transform": "NONE LOGISTIC SOFTMAX SOFTMAX_ZERO PROBIT",
        "reduction": "none add mul max min",
    }.items()
}
"""The words that an attribute may be or have, of all operators or of one. Small and capital letters of `activations` are alike."""


def _is_tuple_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, tuple) and all(isinstance(part, kind) for part in value)


KINDS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "f": ("a float", lambda value: isinstance(value, float)),
    "fs": ("floats", _is_tuple_of(float)),
    "g": ("a graph", lambda value: isinstance(value, OnnxGraph)),
    "i": ("an integer", lambda value: isinstance(value, int)),
    "is": ("integers", _is_tuple_of(int)),
    "s": ("a text", lambda value: isinstance(value, str)),
    "ss": ("texts", _is_tuple_of(str)),
    "st": ("a sparse tensor", lambda _: True),
    "t": ("a tensor", lambda value: isinstance(value, np.ndarray)),
}
"""The kinds of attributes in words, and what values they have."""


@dataclass(frozen=True)
class Signature:
    """`most` and `results` are None where there is no limit; `attributes` are kinds by name."""

    least: int
    most: int | None
    results: int | None
    attributes: Mapping[str, str]
    required: frozenset[str]


def _signatures() -> Mapping[str, Signature]:
    found: dict[str, Signature] = {}
    for row in re.sub(r"\n {8}", " ", _TABLE).strip().splitlines():
        operators, counts, *rest = row.split("|")
        named = dict(entry.split(":") for entry in "".join(rest).split())
        operands, arrow, results = counts.strip().partition(">")
        least, dash, most = operands.partition("-")
        signature = Signature(
            int(least),
            int(least) if not dash else int(most) if most else None,
            1 if not arrow else int(results) if results else None,
            {name: kind.rstrip("!") for name, kind in named.items()},
            frozenset(name for name, kind in named.items() if kind.endswith("!")),
        )
        found |= dict.fromkeys(operators.split(), signature)
    return found


SIGNATURES = _signatures()
"""By operator of ONNX's own domain, of `ai.onnx.ml`, and of ONNX Runtime's `com.microsoft`."""


def require_signatures(graph: OnnxGraph) -> None:
    """Raises `ProgramError` E1001 for a node of the graph, or of graphs inside it, that isn't what its operator is."""
    for node in graph.nodes:
        _require_signature(node)
        for inner in node.attributes.values():
            if isinstance(inner, OnnxGraph):
                require_signatures(inner)


def _require_signature(node: OnnxNode) -> None:
    """Refuses other operands, results or attributes than the operator has, and a node without an operator."""
    if not node.op:
        raise malformed(f"{node.title or 'a node'} has no operator", CHECKER)
    if (signature := SIGNATURES.get(node.kind)) is None:
        return
    message, help = _fault(node, signature)
    if message:
        raise malformed(f"{node.title} ({named(node.op)}): {message}", help or node.checker)


def _fault(node: OnnxNode, signature: Signature) -> tuple[str, str]:
    """What is wrong with a node, and what to do; empty where nothing is."""
    count = next((index for index in range(len(node.inputs), 0, -1) if node.inputs[index - 1]), 0)
    results = next((index for index in range(len(node.outputs), 0, -1) if node.outputs[index - 1]), 0)
    has_gaps = node.op == "Loop" or node.domain == OPTIMISED  # operands before the last one that must be there may be left out
    if count < signature.least and node.op != "Loop":
        return f"it has {counted(count, 'operand')}, and ONNX has {_range_of(signature)}", ""
    if signature.most is not None and count > signature.most:
        return f"it has {counted(count, 'operand')}, and ONNX has {_range_of(signature)}", ""
    if "" in node.inputs[: signature.least] and not has_gaps:
        return f"operand {node.inputs.index('') + 1} is missing", ""
    if signature.results is not None and results > signature.results:
        return f"it has {counted(results, 'result')}, and ONNX has at most {signature.results}", ""
    if missing := sorted(signature.required - node.attributes.keys()):
        return f"it has no {listed(missing)}", ""
    if node.op == "Constant" and len(said := sorted(signature.attributes.keys() & node.attributes.keys())) != 1:
        return f"it has {listed(said) or 'no value'}, and ONNX has one value", ""
    faults = (_attribute_fault(node, name, value, signature) for name, value in node.attributes.items())
    return next((fault for fault in faults if fault[0]), ("", ""))


def _range_of(signature: Signature) -> str:
    if signature.most is None:
        return f"at least {signature.least}"
    return str(signature.least) if signature.most == signature.least else f"{signature.least} to {signature.most}"


def _attribute_fault(node: OnnxNode, name: str, value: object, signature: Signature) -> tuple[str, str]:
    """Names that begin with two underscores are notes of a program's own."""
    if name.startswith("__"):
        return "", ""
    if name not in signature.attributes:
        return f"ONNX has no attribute {named(name)} of it", did_you_mean(name, signature.attributes)
    what, is_kind = KINDS[signature.attributes[name]]
    if not is_kind(value):
        return f"{name} is {shortened(list(value) if isinstance(value, tuple) else value)}, and ONNX has {what} there", ""
    if isinstance(value, int):
        return _number_fault(node, name, value), ""
    words = WORDS.get(f"{node.op}.{name}") or WORDS.get(name)
    return ("", "") if words is None else _word_fault(name, value, words)


def _number_fault(node: OnnxNode, name: str, value: int) -> str:
    """What is wrong with a number: it is none of those that the attribute may be, or too small, or no type of elements."""
    numbers = NUMBERS.get(f"{node.op}.{name}") or NUMBERS.get(name, (value,))
    if value not in numbers:
        return f"{name} is {value:,}, and ONNX has {listed([*map(str, numbers)], 'or')}"
    if value < LEAST.get(name, value):
        return f"{name} is {value:,}, and it is at least {LEAST[name]}"
    return f"{name} is {type_name(value)}" if value not in ELEMENTS.get(name, (value,)) else ""


def _word_fault(name: str, value: object, words: frozenset[str]) -> tuple[str, str]:
    """A text that is none of the words, or a list with such a one; an empty text is the word that ONNX has without it."""
    if isinstance(value, tuple):
        known = {word.lower() for word in words}
        wrong = next((text for text in value if text.lower() not in known), None)
    else:
        wrong = value if isinstance(value, str) and value and value not in words else None
    if wrong is None:
        return "", ""
    has = "has" if isinstance(value, tuple) else "is"
    return f"{name} {has} {shortened(wrong)}, and ONNX has {listed(sorted(words), 'or')}", did_you_mean(wrong, words)
