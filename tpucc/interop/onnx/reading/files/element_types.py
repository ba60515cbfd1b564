"""The types of elements that ONNX's operators take and make: a file in which a node has others is damaged.

Source: ONNX's operator schemas, of all versions of an operator since opset 7 together, and those of ONNX Runtime. They are the file's
types: what tpucc holds as float32 in the place of booleans and integers is no matter here. A type that isn't known, as after an operator of
another domain, is any.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np

from tpucc.diagnostics import ProgramError
from tpucc.interop.onnx.reading.files.model import OnnxGraph, OnnxNode, type_name
from tpucc.interop.onnx.reading.files.problems import CHECKER, malformed, named
from tpucc.interop.onnx.reading.files.tensors import BFLOAT16, BOOL, FLOAT, FLOATS, INT64, NAMES, TYPES

UINT8, INT8, UINT16, INT16, INT32, FLOAT16 = (
    next(number for number, type_ in TYPES.items() if type_ == wanted)
    for wanted in (np.uint8, np.int8, np.uint16, np.int16, np.int32, np.float16)
)
_FLOATS = frozenset(FLOATS) - {BFLOAT16}
_INTEGERS = frozenset(TYPES) - {*FLOATS, BOOL}
ONE_TYPE: Mapping[str, int] = {"b": BOOL, "l": INT64, "s": FLOAT, "u": UINT8, "w": INT32}
"""Letters of the table that stand for one type."""
CLASSES: Mapping[str, tuple[str, frozenset[int]]] = {
    "a": ("any type", _FLOATS | _INTEGERS | {BOOL}),
    "c": ("integers of 8 bits", frozenset([UINT8, INT8])),
    "d": ("integers of 8 or 16 bits or int32", frozenset([UINT8, INT8, UINT16, INT16, INT32])),
    "e": ("integers of 8 or 16 bits", frozenset([UINT8, INT8, UINT16, INT16])),
    "f": ("floats", _FLOATS),
    "n": ("floats or integers", _FLOATS | _INTEGERS),
    "q": ("float32, float16 or int32", frozenset([FLOAT, FLOAT16, INT32])),
    "t": ("float32 or float16", frozenset([FLOAT, FLOAT16])),
    "x": ("int32 or int64", frozenset([INT32, INT64])),
    **{letter: (type_name(number), frozenset([number])) for letter, number in ONE_TYPE.items()},
}
"""The letters of the table: in words, and ONNX's numbers of the types."""
OTHER_NAMES = {"g": "f", "h": "f", "m": "c", "o": "c"}
"""More letters for floats and integers of 8 bits, as operands with one capital letter have one type."""
_TABLE = """
    >- | Constant
    A*>A | Concat
    A*>- | SequenceConstruct
    A>A | DepthToSpace Flatten Identity SpaceToDepth Transpose
    AA>b | Equal
    AXXXX>A | Slice
    Af>A | Upsample
    Afsl>A | Resize
    Al>A | Expand GatherND ReduceMax ReduceMin Reshape ReverseSequence Squeeze Tile Trilu
        Unsqueeze
    Al>A* | Split
    AlA>A | ScatterND
    AlAx>A | Pad
    AxA>A | Scatter ScatterElements
    Ax>A | Gather GatherElements
    B>B | Not
    BB>b | And Or Xor
    CMCM>w | ConvInteger MatMulInteger
    TTe>- | com.microsoft.QuantizeLinear
    CTCMTMTO>O | QLinearMatMul
    CsCCsCsC>C | com.microsoft.QLinearAdd com.microsoft.QLinearMul
    CsCMsMsOw>O | QLinearConv
    CsCMsMwsc>- | com.microsoft.QGemm
    CsCsC>C | com.microsoft.QLinearAveragePool com.microsoft.QLinearGlobalAveragePool com.microsoft.QLinearLeakyRelu
        com.microsoft.QLinearSigmoid com.microsoft.QLinearSoftmax
    DtD>- | DequantizeLinear com.microsoft.DequantizeLinear
    F*>F | Mean Sum
    F>F | AveragePool Ceil Celu Cos Elu Exp Floor Gelu GlobalAveragePool GlobalMaxPool HardSigmoid HardSwish Hardmax LRN LeakyRelu Log
        LogSoftmax LpNormalization MeanVarianceNormalization Mish Reciprocal Round Selu Sigmoid Sin Softmax Softplus Softsign Sqrt Swish
        Tanh ThresholdedRelu
    FFF>F | Conv ConvTranspose GroupNormalization InstanceNormalization
    FFF>F-- | LayerNormalization
    FFFFwF>FF | GRU RNN
    FFFFwFFF>FFF | LSTM
    FGGHH>F---- | BatchNormalization
    Ffb>F- | Dropout
    N*>N | Einsum Max Min
    N>N | Abs Erf Neg Relu Sign ai.onnx.ml.Binarizer ai.onnx.ml.Imputer
    N>Nl | MaxPool
    NN>N | Add Div MatMul Mod Mul PRelu Sub
    NN>b | Greater GreaterOrEqual Less LessOrEqual
    NNN>N | Clip Gemm Range
    Nl>N | ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare
    Nn>N | Pow
    Nl>N | ai.onnx.ml.ArrayFeatureExtractor
    Nx>N | CumSum
    a>- | Cast EyeLike
    aA>A | CastLike
    a>l | NonZero Shape Size
    b>- | If
    bAA>A | Where
    bCsCCsCsC>C | com.microsoft.QLinearWhere
    f>b | IsInf IsNaN
    fF>F | RMSNormalization
    l>- | ConstantOfShape
    lba*>- | Loop
    n>-s | ai.onnx.ml.LinearClassifier
    n>l | ArgMax ArgMin
    n>s | ai.onnx.ml.LinearRegressor ai.onnx.ml.Normalizer ai.onnx.ml.Scaler
    nnA>A | OneHot
    qqe>- | QuantizeLinear
    s>- | ai.onnx.ml.ZipMap
    sC>C | com.microsoft.QLinearConcat
    s>usu | DynamicQuantizeLinear
"""
"""A row: letters of the operands, and behind the sign those of the results, `-` where more than the operands decides | operators.
Operands that have no letter have any type.

`*` stands behind the letter of any number of operands or results. What has one capital letter in a row has one type.
"""


@dataclass(frozen=True)
class Letters:
    """Those of an operator's operands and results."""

    operands: str
    results: str


def each_letter(letters: str) -> Iterator[str]:
    """A letter for each operand or result, as many as one likes."""
    return chain(letters.rstrip("*"), repeat(letters[-2] if letters.endswith("*") else "-"))


def _letters() -> Mapping[str, Letters]:
    rows = (row.split("|") for row in _TABLE.replace("\n        ", " ").strip().splitlines())
    return {operator: Letters(*letters.strip().split(">")) for letters, operators in rows for operator in operators.split()}


LETTERS = _letters()
"""By operator."""
Types = MutableMapping[str, int]
"""ONNX's numbers of the types of values, by their names; those that aren't known are missing. bfloat16 counts as float32."""


def require_types(graph: OnnxGraph, outside: ChainMap[str, int] | None = None) -> Types:
    """The types of the values of a graph whose nodes have the operands and attributes of their operators.

    Raises `ProgramError` E1001 for a node with an operand of a type that its operator hasn't, or with operands of several types where
    it has one for all, and for a result of another type than the file says.
    """
    types = ChainMap[str, int]() if outside is None else outside
    types.update((value.name, number) for value in graph.inputs if (number := _known(value.type)))
    types.update((name, _type_of(array)) for name, array in graph.constants.items())
    for node in graph.nodes:
        made = _made(node, types)
        types.update((name, number) for name, number in zip(node.outputs, made, strict=False) if name and number)
    for name, said in (*graph.declared.items(), *((value.name, value.type) for value in graph.outputs)):
        wanted = FLOAT if said == BFLOAT16 else said
        if said > 0 and (found := types.get(name, 0)) and found != wanted:
            raise malformed(f"the file says that {named(name)} is {type_name(said)}, and it is {type_name(found)}", CHECKER)
    return types


def _known(number: int) -> int:
    """The number of a type that is read; 0 for another one."""
    return FLOAT if number == BFLOAT16 else number if number in TYPES else 0


def _type_of(array: object) -> int:
    """The number of an array's type; 0 for what is no array."""
    return next((number for number, type_ in TYPES.items() if isinstance(array, np.ndarray) and type_ == array.dtype), 0)


def _made(node: OnnxNode, types: ChainMap[str, int]) -> Sequence[int]:
    """The types of a node's results, 0 for those that aren't known."""
    if (letters := LETTERS.get(node.kind)) is None:
        return ()
    bound = _bound(node, letters, types)
    inner = {name: require_types(value, types.new_child()) for name, value in node.attributes.items() if isinstance(value, OnnxGraph)}
    if node.kind == "If":
        return _of_branches(node, inner)
    if node.kind == "Loop":
        return [inner["body"].get(value.name, 0) for value in node.attributes["body"].outputs[1:]]
    if (make := MAKES.get(node.kind)) is not None:
        return [make(node, [types.get(name, 0) for name in node.inputs])]
    return [
        ONE_TYPE.get(letter) or bound.get(letter, (0, 0))[1] for letter, _ in zip(each_letter(letters.results), node.outputs, strict=False)
    ]


def _bound(node: OnnxNode, letters: Letters, types: Types) -> Mapping[str, tuple[int, int]]:
    """By capital letter the first operand that has it, and its type."""
    bound: dict[str, tuple[int, int]] = {}
    for index, (name, letter) in enumerate(zip(node.inputs, each_letter(letters.operands), strict=False)):
        if letter == "-" or not (number := types.get(name, 0)):
            continue
        what, taken = CLASSES[OTHER_NAMES.get(letter.lower(), letter.lower())]
        if number not in taken:
            raise _wrong(node, f"operand {index + 1} is {type_name(number)}, and ONNX has {what} there")
        if letter.isupper():
            first, other = bound.setdefault(letter, (index, number))
            if other != number:
                both = f"operands {first + 1} and {index + 1} are {type_name(other)} and {type_name(number)}"
                raise _wrong(node, f"{both}, and ONNX has one type for both")
    return bound


def _of_branches(node: OnnxNode, inner: Mapping[str, Types]) -> Sequence[int]:
    """The types that the branches of an If have for its results."""
    found = [[inner[name].get(value.name, 0) for value in node.attributes[name].outputs] for name in ("then_branch", "else_branch")]
    for index, (taken, other) in enumerate(zip(*found, strict=False)):
        if taken and other and taken != other:
            raise _wrong(node, f"its result {index + 1} is {type_name(taken)} in one branch, and {type_name(other)} in the other")
    return [taken or other for taken, other in zip(*found, strict=False)]


HELP: Mapping[str, str] = {
    "ai.onnx.ml.ZipMap": 'skl2onnx makes maps of float32 if it is given a row of float32: to_onnx(model, x[:1].astype("float32"))',
}
"""What to do about wrong types of an operator, where more is known than that they are wrong."""


def _wrong(node: OnnxNode, message: str) -> ProgramError:
    return malformed(f"{node.title} ({named(node.op)}): {message}", HELP.get(node.kind, node.checker))


def _cast(node: OnnxNode, _: Sequence[int]) -> int:
    to = int(node.attributes["to"])
    if to not in TYPES and to not in NAMES:
        raise _wrong(node, f"it makes elements of {type_name(to)}")
    return _known(to)


def _constant(node: OnnxNode, _: Sequence[int]) -> int:
    names = {"value_float": FLOAT, "value_floats": FLOAT, "value_int": INT64, "value_ints": INT64}
    return next((number for name, number in names.items() if name in node.attributes), _type_of(node.attributes.get("value")))


def _constant_of_shape(node: OnnxNode, _: Sequence[int]) -> int:
    return _type_of(node.attributes["value"]) if "value" in node.attributes else FLOAT


def _quantized(node: OnnxNode, operands: Sequence[int]) -> int:
    """That of the zero point, or that of the attribute. Raises `ProgramError` where they differ, or the attribute's is none of integers."""
    number = node.attributes.get("output_dtype", 0)
    said = _known(number)
    if number and not said:  # a type that isn't read
        return 0
    what, taken = CLASSES["e"]
    if said and said not in taken:
        raise _wrong(node, f"output_dtype is {type_name(said)}, and ONNX has {what} there")
    zero = operands[2] if len(operands) > 2 and node.inputs[2] else said or UINT8
    if said and zero and zero != said:
        raise _wrong(node, f"output_dtype is {type_name(said)}, and the zero point is {type_name(zero)}: ONNX has one type for both")
    return zero


def _said_or(number: int, other: int) -> int:
    """The type that an attribute says, 0 for one that isn't read; another one where it says none."""
    return _known(number) if number else other


def _gemm(node: OnnxNode, operands: Sequence[int]) -> int:
    """Integers where it has a scale of its result."""
    if len(operands) < 8 or not node.inputs[7]:
        return FLOAT
    return operands[8] if len(operands) > 8 else operands[0]


MAKES: Mapping[str, Callable[[OnnxNode, Sequence[int]], int]] = {
    "Cast": _cast,
    "Constant": _constant,
    "ConstantOfShape": _constant_of_shape,
    "DequantizeLinear": lambda node, operands: _said_or(node.attributes.get("output_dtype", 0), operands[1]),
    "com.microsoft.DequantizeLinear": lambda node, operands: operands[1],
    "com.microsoft.QGemm": _gemm,
    "com.microsoft.QuantizeLinear": _quantized,
    "EyeLike": lambda node, operands: _said_or(node.attributes.get("dtype", 0), operands[0]),
    "QuantizeLinear": _quantized,
}
"""The type of the first result, where an attribute or an operand that may be missing decides."""
