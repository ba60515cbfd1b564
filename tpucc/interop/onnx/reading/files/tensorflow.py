"""Names that TensorFlow gives to its operations, as tf2onnx keeps them."""

from __future__ import annotations

import re

UNKNOWN_SIZE = re.compile(r"unk__\d+|(p2o\.)?DynamicDimension\.\d+")
"""Names that tf2onnx and Paddle2ONNX make up for sizes that had none."""
OPERATION = re.compile(
    r"(Add|BiasAdd|Cast|ExpandDims|GatherV2|MatMul|ReadVariableOp|Reshape|Squeeze|Tensordot|convolution|depthwise|merged_input|resource)"
    r"(_?\d+)?"
)
"""Operations of a layer: the last parts of names."""
KERNELS = ("/convolution", "/depthwise", "/MatMul")
"""Those by which a layer is known, of several that TensorFlow Lite has made one."""


def layer_of(name: str) -> str:
    """`net.dense`, of `net/dense/BiasAdd/ReadVariableOp:0`, or of `net/dense/Relu;net/dense/MatMul`. Empty for a name of no operation.

    Recurrent layers have a part `while` for their loops, and not for what is computed before them.
    """
    joined = name.removesuffix(":0").split(";")
    parts = [part for part in next((part for part in joined if part.endswith(KERNELS)), joined[0]).split("/") if part]
    if len(parts) < 2 or not (name.endswith(":0") or len(joined) > 1 or OPERATION.fullmatch(parts[-1])):
        return ""
    parts.pop()
    while len(parts) > 1 and OPERATION.fullmatch(parts[-1]):
        parts.pop()
    return ".".join(part for part in parts if part != "while")
