"""Normalisations: by constants of each channel, or by the mean and the variance of the values themselves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from tpucc.interop.onnx.reading.building.axes import axes_of
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule, normal
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value, plain
from tpucc.interop.onnx.reading.files.model import OWN
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.rules.reductions import reduced
from tpucc.ir.node import Node

SMALLEST = float(np.finfo(np.float32).tiny)
"""What a norm of 0 is taken for: the values stay 0, as ONNX says."""


def _batch(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    is_standardised = c.attribute("training_mode", 0) and isinstance(c.value(0), Static)
    if not is_standardised and (c.attribute("training_mode", 0) or not c.attribute("spatial", 1)):
        raise Unsupported("statistics of the batch itself", "export the model for inference: model.eval()")
    c.alone()
    if is_standardised:  # weights, by their own mean and variance
        made = centred(net, x, [axis for axis in range(x.rank) if axis != 1], c.attribute("epsilon", 1e-5))
        return _scaled(net, made, *(_of_channels(c.value(index), x.rank) for index in (1, 2)))
    order = (0, *range(2, x.rank), 1) if x.rank > 1 else (0,)
    constants = [_vector(net, c.value(index), role) for index, role in enumerate(("scale", "bias", "mean", "variance"), 1)]
    node = net.add("batch_norm", net.arranged(x, order), *constants, epsilon=c.attribute("epsilon", 1e-5))
    return Tensor(node, axes_of(order))


def _own_batch(c: Call) -> Result:
    """Along the last axis of any value."""
    net = c.network
    constants = [_vector(net, c.value(index), role) for index, role in enumerate(("scale", "bias", "mean", "variance"), 1)]
    made = net.add("batch_norm", net.plain(c.tensor(0)).node, *constants, epsilon=c.attribute("epsilon", 1e-5))
    return net.reshaped(plain(made), c.attribute("shape"))


def _own_response(c: Call) -> Result:
    """Along the last axis of any value."""
    net = c.network
    numbers = {name: c.attribute(name) for name in ("size", "alpha", "beta", "bias")}
    made = plain(net.add("lrn", net.plain(c.tensor(0)).node, **numbers))
    return net.reshaped(made, c.attribute("shape", made.shape))


def _vector(net: Network, value: Value, role: str) -> Node:
    return net.weight(value.array, value.name, role) if isinstance(value, Static) else net.arranged(value, range(value.rank))


def centred(net: Network, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon), both along axes of the file."""
    apart = net.elementwise("sub", x, reduced(net, "mean", x, axes, True))
    variance = reduced(net, "mean", Tensor(net.add("mul", apart.node, apart.node), apart.axes), axes, True)
    return net.elementwise("div", apart, net.map(net.affine(variance, 1.0, epsilon), "sqrt"))


def _scaled(net: Network, x: Tensor, scale: Value, bias: Value | None) -> Tensor:
    made = net.elementwise("mul", x, scale)
    return made if bias is None else net.elementwise("add", made, bias)


def _of_channels(value: Value, rank: int) -> Value:
    """A value of each channel, with axes of size 1 behind it."""
    if isinstance(value, Static):
        return Static(value.array.reshape(-1, *(1,) * (rank - 2)), value.name)
    return Tensor(value.node, (*value.axes, *(() for _ in range(rank - 2))))


def _instance(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    made = centred(net, x, range(2, x.rank), c.attribute("epsilon", 1e-5))
    scale, bias = c.value(1), c.value(2)
    if isinstance(scale, Static) and (scale.array == 1).all() and isinstance(bias, Static) and not bias.array.any():
        return made
    return _scaled(net, made, _of_channels(scale, x.rank), _of_channels(bias, x.rank))


def _group(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    groups = int(c.attribute("num_groups", 0))
    if x.rank < 2 or groups < 1 or x.shape[1] % groups:
        raise Unsupported(f"{groups:,} groups of the channels of {list(x.shape)}")
    split = net.reshaped(x, (x.shape[0], groups, x.shape[1] // groups, *x.shape[2:]))
    made = centred(net, split, range(2, split.rank), c.attribute("epsilon", 1e-5))
    if c.opset < 21:
        scale, bias = (_of_channels(c.value(index), split.rank) for index in (1, 2))
        return net.reshaped(_scaled(net, made, scale, bias), x.shape)
    whole = net.reshaped(made, x.shape)
    return _scaled(net, whole, *(_of_channels(c.value(index), x.rank) for index in (1, 2)))


def _layer(c: Call) -> Result:
    """Along the last axis it is layer_norm; along several, or with a scale or a bias that differs along others, it is made of
    their mean and variance."""
    net, x = c.network, c.tensor(0)
    c.alone()
    first = c.axis(-1, x.rank)
    epsilon = c.attribute("epsilon", 1e-5)
    bias = c.value(2) if c.has(2) else None
    own = [value for value in (c.value(1), bias) if value is not None]
    if first < x.rank - 1 or any(math.prod(value.shape[:-1]) > 1 for value in own):
        return _scaled(net, centred(net, x, range(first, x.rank), epsilon), c.value(1), bias)
    return layer_norm(net, x, c.value(1), bias, epsilon)


def layer_norm(net: Network, x: Tensor, scale: Value, bias: Value | None, epsilon: float) -> Tensor:
    """layer_norm along the last axis of the file, which becomes the node's last."""
    single = net.single(x)
    order = sorted(range(x.rank), key=lambda axis: (axis == x.rank - 1, single.axes[axis]))
    width = x.shape[-1]
    if bias is None:
        bias = Static(np.zeros(width, np.float32), "")
    gamma, beta = (_row(net, value, width, role) for value, role in ((scale, "scale"), (bias, "bias")))
    return Tensor(net.add("layer_norm", net.arranged(single, order), gamma, beta, epsilon=epsilon), axes_of(order))


def _row(net: Network, value: Value, width: int, role: str) -> Node:
    if isinstance(value, Static):
        return net.weight(np.broadcast_to(value.array, (*value.array.shape[:-1], width)).reshape(width), value.name, role)
    return net.arranged(value, range(value.rank))


def _root_mean_square(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    c.alone()
    first = c.axis(-1, x.rank)
    mean = reduced(net, "mean", Tensor(net.add("mul", x.node, x.node), x.axes), range(first, x.rank), True)
    made = net.elementwise("div", x, net.map(net.affine(mean, 1.0, c.attribute("epsilon", 1e-5)), "sqrt"))
    return _scaled(net, made, c.value(1), None)


def _norm(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    axis, p = c.axis(-1, x.rank), c.attribute("p", 2)
    if p == 1:
        return net.elementwise("div", x, reduced(net, "sum", net.map(x, "abs"), [axis], True))
    total = reduced(net, "sum", Tensor(net.add("mul", x.node, x.node), x.axes), [axis], True)
    root = net.map(total, "sqrt")
    return net.elementwise("div", x, net.elementwise("maximum", root, Static(np.array(SMALLEST, np.float32), "")))


def _mean_variance(c: Call) -> Result:
    x = c.tensor(0)
    axes = [normal(axis, x.rank) for axis in c.attribute("axes", (0, 2, 3))]
    return centred(c.network, x, axes, 1e-9)


RULES: Mapping[str, Rule] = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LayerNormalization": _layer,
    "LpNormalization": _norm,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _root_mean_square,
    "SimplifiedLayerNormalization": _root_mean_square,
}
OWN_RULES: Mapping[str, Rule] = {f"{OWN}.BatchNormalization": _own_batch, f"{OWN}.LRN": _own_response}
"""Those of forms that tpucc's export writes."""
