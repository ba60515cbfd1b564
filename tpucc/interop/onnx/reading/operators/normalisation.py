"""Normalisations: by constants of each channel, or by the mean and the variance of the values themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result, normal_axes
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value, axes_of, broadcast
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.interop.onnx.reading.operators.reductions import reduced
from tpucc.interop.onnx.reading.operators.rows import Axis, Fact, Ints, Positive, operator

SMALLEST = float(np.finfo(np.float32).tiny)
"""What a norm of 0 is taken for: the values stay 0, as ONNX says."""


def _require_channels(values: Sequence[Value], channels: int) -> None:
    """Raises `Misfit` for operands that don't have one number for each channel."""
    require(all(value.shape == (channels,) for value in values))


def _channels(x: Value) -> int:
    return x.shape[1] if len(x.shape) > 1 else 1


@operator("BatchNormalization", Fact.IMAGES, ignored="momentum")
def batch_norm(
    c: Call,
    value: Value,
    scale: Value,
    bias: Value,
    mean: Value,
    variance: Value,
    *,
    epsilon: float = 1e-5,
    spatial: bool = True,
    training_mode: bool = False,
) -> Result:
    net, x = c.net, c.net.tensor(value)
    is_standardised = training_mode and isinstance(value, Static)
    if spatial:
        _require_channels((scale, bias, mean, variance), _channels(x))
    if not is_standardised and (training_mode or not spatial):
        raise Unsupported("statistics of the batch itself", "export the model for inference: model.eval()")
    c.alone()
    if is_standardised:  # weights, by their own mean and variance
        made = centred(net, x, [axis for axis in range(x.rank) if axis != 1], epsilon)
        return _scaled(net, made, *(_of_channels(net, each, x.rank) for each in (scale, bias)))
    order = (0, *range(2, x.rank), 1) if x.rank > 1 else (0,)
    roles = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    constants = [net.parameter(each, role) for role, each in roles.items()]
    return Tensor(net.add("batch_norm", net.arranged(x, order), *constants, epsilon=epsilon), axes_of(order))


def centred(net: Network, x: Tensor, axes: Sequence[int], epsilon: float) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon), both along axes of the file."""
    apart = net.elementwise("sub", x, reduced(net, "mean", x, axes, True))
    variance = reduced(net, "mean", Tensor(net.add("mul", apart.node, apart.node), apart.axes), axes, True)
    return net.elementwise("div", apart, net.map(net.affine(variance, 1.0, epsilon), "sqrt"))


def _scaled(net: Network, x: Tensor, scale: Value, bias: Value | None) -> Tensor:
    made = net.elementwise("mul", x, scale)
    return made if bias is None else net.elementwise("add", made, bias)


def _of_channels(net: Network, value: Value, rank: int) -> Value:
    """A value of each channel, with axes of size 1 behind it."""
    return net.reshaped(value, (*value.shape, *(1,) * (rank - 2)))


@operator("InstanceNormalization", Fact.IMAGES)
def instance_norm(c: Call, x: Tensor, scale: Value, bias: Value, *, epsilon: float = 1e-5) -> Result:
    _require_channels((scale, bias), _channels(x))
    made = centred(c.net, x, range(2, x.rank), epsilon)
    if isinstance(scale, Static) and (scale.array == 1).all() and isinstance(bias, Static) and not bias.array.any():
        return made
    return _scaled(c.net, made, *(_of_channels(c.net, each, x.rank) for each in (scale, bias)))


@operator("GroupNormalization", ignored="stash_type")
def group_norm(c: Call, x: Tensor, scale: Value, bias: Value, *, num_groups: Positive, epsilon: float = 1e-5) -> Result:
    net = c.net
    require(x.rank > 1 and x.shape[1] % num_groups == 0)
    _require_channels((scale, bias), x.shape[1] if c.opset >= 21 else num_groups)
    split = net.reshaped(x, (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:]))
    made = centred(net, split, range(2, split.rank), epsilon)
    if c.opset < 21:
        return net.reshaped(_scaled(net, made, *(_of_channels(net, value, split.rank) for value in (scale, bias))), x.shape)
    return _scaled(net, net.reshaped(made, x.shape), *(_of_channels(net, value, x.rank) for value in (scale, bias)))


@operator("LayerNormalization", ignored="stash_type")
def layer_norm_of(c: Call, x: Tensor, scale: Value, bias: Value | None, *, axis: Axis = -1, epsilon: float = 1e-5) -> Result:
    """Along the last axis it is layer_norm; along several, or with a scale or a bias that differs along others, it is made of
    their mean and variance."""
    c.alone()
    own = [value for value in (scale, bias) if value is not None]
    require(all(broadcast([value.shape, x.shape]) == x.shape for value in own))
    if axis < x.rank - 1 or any(math.prod(value.shape[:-1]) > 1 for value in own):
        return _scaled(c.net, centred(c.net, x, range(axis, x.rank), epsilon), scale, bias)
    return layer_norm(c.net, x, scale, bias, epsilon)


def layer_norm(net: Network, x: Tensor, scale: Value, bias: Value | None, epsilon: float) -> Tensor:
    """layer_norm along the last axis of the file, which becomes the node's last."""
    single = net.single(x)
    order = sorted(range(x.rank), key=lambda axis: (axis == x.rank - 1, single.axes[axis]))
    width = x.shape[-1]
    if bias is None:
        bias = Static(np.zeros(width, np.float32), "")
    gamma, beta = (net.parameter(_row(value, width), role) for value, role in ((scale, "scale"), (bias, "bias")))
    return Tensor(net.add("layer_norm", net.arranged(single, order), gamma, beta, epsilon=epsilon), axes_of(order))


def _row(value: Value, width: int) -> Value:
    """A known value with one number for each column."""
    return replace(value, array=np.broadcast_to(value.array.reshape(-1), (width,))) if isinstance(value, Static) else value


@operator("RMSNormalization", "SimplifiedLayerNormalization", ignored="stash_type")
def root_mean_square_norm(c: Call, x: Tensor, scale: Value, *, axis: Axis = -1, epsilon: float = 1e-5) -> Result:
    net = c.net
    c.alone()
    mean = reduced(net, "mean", Tensor(net.add("mul", x.node, x.node), x.axes), range(axis, x.rank), True)
    return _scaled(net, net.elementwise("div", x, net.map(net.affine(mean, 1.0, epsilon), "sqrt")), scale, None)


@operator("LpNormalization")
def norm(c: Call, x: Tensor, *, axis: Axis = -1, p: Literal[1, 2] = 2) -> Result:
    net = c.net
    if p == 1:
        return net.elementwise("div", x, reduced(net, "sum", net.map(x, "abs"), [axis], True))
    total = reduced(net, "sum", Tensor(net.add("mul", x.node, x.node), x.axes), [axis], True)
    root = net.map(total, "sqrt")
    return net.elementwise("div", x, net.elementwise("maximum", root, Static(np.array(SMALLEST, np.float32), "")))


@operator("MeanVarianceNormalization")
def mean_variance_norm(c: Call, x: Tensor, *, axes: Ints = (0, 2, 3)) -> Result:
    return centred(c.net, x, normal_axes(axes, x.rank), 1e-9)
