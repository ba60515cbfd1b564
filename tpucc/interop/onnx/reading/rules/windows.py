"""Convolutions and pools: [N, C, H, W] in the file, [N, H, W, C] in tpucc; a sequence [N, C, L] is an image of height 1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tpucc.diagnostics import counted
from tpucc.interop.onnx.reading.building.axes import axes_of
from tpucc.interop.onnx.reading.building.call import Call, Result, Rule
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value
from tpucc.interop.onnx.reading.files.problems import Unsupported
from tpucc.interop.onnx.reading.rules.places import mixed
from tpucc.interop.onnx.reading.rules.reductions import reduced
from tpucc.ir.node import Node
from tpucc.numerics import AnyArray

CHANNELS_LAST = (0, 2, 3, 1)


@dataclass(frozen=True)
class Windows:
    """The windows of a node along height and width; padding is (top, bottom, left, right)."""

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int]
    dilation: tuple[int, int]

    @property
    def extent(self) -> list[int]:
        return [(size - 1) * apart + 1 for size, apart in zip(self.size, self.dilation, strict=True)]


def image(net: Network, t: Tensor) -> Tensor:
    """The tensor as [N, C, H, W]. Raises `Unsupported` for volumes."""
    if t.rank == 4:
        return t
    if t.rank == 3:
        return net.reshaped(t, (t.shape[0], t.shape[1], 1, t.shape[2]))
    raise Unsupported(f"a tensor of {t.rank} axes", "tpucc has images [N, C, H, W] and sequences [N, C, L], no volumes")


def channels_last(net: Network, t: Tensor) -> Node:
    return net.arranged(image(net, t), CHANNELS_LAST)


def from_channels_last(net: Network, node: Node, rank: int) -> Tensor:
    """The result of a node [N, H, W, C] with the axes of the file."""
    made = Tensor(node, axes_of(CHANNELS_LAST))
    n, c, _, width = made.shape
    return made if rank == 4 else net.reshaped(made, (n, c, width))


def windows(c: Call, x: Tensor, kernel: Sequence[int] | None = None) -> Windows:
    """The windows that the attributes say, of an image `x` [N, C, H, W]."""
    size = pair(kernel if kernel is not None else c.attribute("kernel_shape") or (), "kernel_shape")
    stride = pair(c.attribute("strides") or (1,) * 2, "strides")
    dilation = pair(c.attribute("dilations") or (1,) * 2, "dilations")
    made = Windows(size, stride, (0, 0, 0, 0), dilation)
    return Windows(size, stride, _padding(c, x.shape[2:], made), dilation)


def require_fit(x: Tensor, made: Windows, *, ceil: bool = False) -> None:
    """Raises `Unsupported` for a window that is larger than the image `x` [N, C, H, W] and its padding, with `ceil` by a stride or more."""
    for axis, name in enumerate(("height", "width")):
        added = sum(made.padding[2 * axis : 2 * axis + 2])
        extent, most = made.extent[axis], x.shape[axis + 2] + added + (made.stride[axis] - 1 if ceil else 0)
        if extent > most:
            room = f"{x.shape[axis + 2]} and {added} of padding" if added else f"{x.shape[axis + 2]}"
            raise Unsupported(
                f"the window's {name} of {extent} is more than the image's {room}",
                "ONNX's formula gives no window there, and ONNX Runtime one where less than a stride is missing: pad the image",
            )


def pair(numbers: Sequence[int], what: str) -> tuple[int, int]:
    """(height, width); a number of a sequence is a width."""
    if len(numbers) == 1:
        return 1, numbers[0]
    if len(numbers) != 2:
        raise Unsupported(f"{what} has {len(numbers)} numbers", "tpucc has windows of images and of sequences")
    return numbers[0], numbers[1]


def _padding(c: Call, sizes: Sequence[int], made: Windows) -> tuple[int, int, int, int]:
    rule = c.attribute("auto_pad", "NOTSET")
    if rule in ("NOTSET", ""):
        return sides(c.attribute("pads") or (0,) * 4)
    if rule == "VALID":
        return 0, 0, 0, 0
    found: list[int] = []
    for size, stride, extent in zip(sizes, made.stride, made.extent, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + extent - size)
        found += [total // 2, total - total // 2] if rule == "SAME_UPPER" else [total - total // 2, total // 2]
    return found[0], found[1], found[2], found[3]


def sides(pads: Sequence[int]) -> tuple[int, int, int, int]:
    """ONNX's (begins…, ends…) as (top, bottom, left, right)."""
    if min(pads, default=0) < 0:
        raise Unsupported("negative padding", "a slice before it cuts as much")
    if len(pads) == 2:
        return 0, 0, pads[0], pads[1]
    if len(pads) != 4:
        raise Unsupported(f"pads has {len(pads)} numbers")
    return pads[0], pads[2], pads[1], pads[3]


def short_padding(padding: tuple[int, int, int, int]) -> Any:
    """As a person writes it: "valid", one number, or all four."""
    if len(set(padding)) == 1:
        return padding[0] or "valid"
    return padding


def short(numbers: tuple[int, int]) -> Any:
    return numbers[0] if numbers[0] == numbers[1] else numbers


def _conv(c: Call) -> Result:
    net, x, kernel = c.network, c.tensor(0), c.value(1)
    at, groups = image(net, x), int(c.attribute("group", 1))
    along = short if x.rank == 4 else max  # of a sequence, whose height is 1, the width's number does for both
    shape = _kernel_shape(kernel)
    made = windows(c, at, shape[2:])
    require_fit(at, made)
    weight = _kernel(net, kernel, shape, (2, 3, 1, 0))
    attributes: dict[str, Any] = {
        "stride": along(made.stride),
        "padding": short_padding(made.padding),
        "dilation": along(made.dilation),
        "groups": groups,
    }
    node = net.add("conv2d", net.arranged(at, CHANNELS_LAST), weight, **attributes)
    return from_channels_last(net, biased(net, node, c), x.rank)


def _kernel_shape(kernel: Value) -> tuple[int, ...]:
    """That of a kernel with four axes; one of a sequence has the height 1."""
    shape = kernel.shape if len(kernel.shape) != 3 else (*kernel.shape[:2], 1, kernel.shape[2])
    if len(shape) != 4:
        raise Unsupported(f"a kernel of {len(shape)} axes")
    return shape


def _kernel(net: Network, kernel: Value, shape: tuple[int, ...], order: tuple[int, ...]) -> Node:
    """The kernel with its axes in this order: a weight, or a computed value."""
    if isinstance(kernel, Static):
        return net.weight(kernel.array.reshape(shape).transpose(order), kernel.name)
    return net.arranged(net.reshaped(kernel, shape), order)


def biased(net: Network, node: Node, c: Call, index: int = 2) -> Node:
    """A node with the bias that operand 3 has, one value a channel."""
    if not c.has(index):
        return node
    bias = c.value(index)
    return net.add("add", node, net.weight(bias.array, bias.name) if isinstance(bias, Static) else bias.node)


def _conv_transpose(c: Call) -> Result:
    """Groups become zeros in the kernel, and so do dilation and what is added to the result's end."""
    net, x, kernel = c.network, c.tensor(0), c.value(1)
    at, groups = image(net, x), int(c.attribute("group", 1))
    if groups < 1 or at.shape[1] % groups:
        raise Unsupported(f"{groups:,} groups of {counted(at.shape[1], 'channel')}")
    stride, apart = pair(c.attribute("strides") or (1, 1), "strides"), pair(c.attribute("dilations") or (1, 1), "dilations")
    shape = _kernel_shape(kernel)
    extent = [(size - 1) * step + 1 for size, step in zip(shape[2:], apart, strict=True)]
    padding, beyond = _cut(c, at.shape[2:], extent, stride, x.rank)
    if isinstance(kernel, Static):
        if groups > 1 or apart != (1, 1) or any(beyond):
            sizes = (size + more for size, more in zip(extent, beyond, strict=True))
            net.require_room(math.prod((shape[0], shape[1] * groups, *sizes)))
        w = _dilated(_ungrouped(kernel.array.reshape(shape), groups), apart)
        w = np.pad(w, ((0, 0), (0, 0), *((0, more) for more in beyond)))
        kernel, shape = Static(w, kernel.name), w.shape
    elif groups > 1 or apart != (1, 1) or any(beyond):
        raise Unsupported(
            "its kernel is computed and would get zeros: it has groups, dilation or a larger result",
            "make the kernel a constant of the file",
        )
    weight = _kernel(net, kernel, shape, (2, 3, 0, 1))
    node = net.add("conv_transpose2d", net.arranged(at, CHANNELS_LAST), weight, stride=short(stride), padding=short_padding(padding))
    return from_channels_last(net, biased(net, node, c), x.rank)


def _ungrouped(w: AnyArray, groups: int) -> AnyArray:
    """A kernel [C, F/groups, H, W] as one of all channels, with zeros between the groups."""
    if groups == 1:
        return w
    channels, filters = w.shape[0] // groups, w.shape[1]
    whole = np.zeros((w.shape[0], filters * groups, *w.shape[2:]), w.dtype)
    for group in range(groups):
        rows = slice(group * channels, (group + 1) * channels)
        whole[rows, group * filters : (group + 1) * filters] = w[rows]
    return whole


def _dilated(w: AnyArray, apart: tuple[int, int]) -> AnyArray:
    if apart == (1, 1):
        return w
    wide = np.zeros((*w.shape[:2], *((size - 1) * step + 1 for size, step in zip(w.shape[2:], apart, strict=True))), w.dtype)
    wide[:, :, :: apart[0], :: apart[1]] = w
    return wide


def _cut(
    c: Call, sizes: Sequence[int], window: Sequence[int], stride: tuple[int, int], rank: int
) -> tuple[tuple[int, int, int, int], list[int]]:
    """What is cut off tpucc's whole result, (top, bottom, left, right), and what the kernel must grow by where it is too small.

    `auto_pad` never adds padding below 0, as in ONNX's shape inference and in ONNX Runtime: of a kernel smaller than the stride the result
    ends with the last window. A larger `output_shape` has zeros behind it.
    """
    padded = c.attribute("output_padding") or (0,) * (rank - 2)
    more = pair((0, *padded) if rank == 3 else padded, "output_padding")  # nothing comes behind the only row of a sequence
    wanted = c.attribute("output_shape")
    wanted = pair(wanted, "output_shape") if wanted else None
    rule = c.attribute("auto_pad", "NOTSET")
    given = sides(c.attribute("pads") or (0,) * 4)
    cut: list[int] = []
    beyond: list[int] = []
    for axis in range(2):
        windows = (sizes[axis] - 1) * stride[axis] + window[axis]
        behind = more[axis]
        if rank == 3 and axis == 0:
            before, after = 0, 0
        elif wanted or rule in ("SAME_UPPER", "SAME_LOWER"):
            size = wanted[axis] if wanted else sizes[axis] * stride[axis]
            total = max(0, windows + behind - size)
            behind = max(behind, size - windows) if wanted else behind
            half = total // 2
            before, after = (half, total - half) if rule == "SAME_UPPER" else (total - half, half)
            if wanted and size - windows >= stride[axis]:
                most = windows + stride[axis] - 1
                raise Unsupported(f"an output_shape with {size:,} pixels along an axis", f"of this input it has at most {most:,}")
        else:
            before, after = given[2 * axis : 2 * axis + 2]
        after += max(window[axis], stride[axis]) - window[axis] - behind
        beyond.append(max(0, -after) + (stride[axis] - window[axis] if after < 0 and window[axis] < stride[axis] else 0))
        cut += [before, max(0, after)]
    return (cut[0], cut[1], cut[2], cut[3]), beyond


def _pool(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    c.alone()
    if x.rank > 4 and c.node.op != "MaxPool":
        return _averages(c, x)
    at = image(net, x)
    made, ceil = windows(c, at), bool(c.attribute("ceil_mode", 0))
    require_fit(at, made, ceil=ceil)
    if made.dilation != (1, 1):
        raise Unsupported("windows with dilation", "tpucc's pools have none")
    attributes: dict[str, Any] = {"size": short(made.size), "padding": made.padding, "ceil": ceil}
    if made.stride != made.size:
        attributes["stride"] = short(made.stride)
    if c.node.op != "MaxPool":
        attributes["count_padding"] = bool(c.attribute("count_include_pad", 0)) and any(made.padding)
    attributes["padding"] = short_padding(attributes["padding"])
    if c.node.op == "MaxPool":
        found = from_channels_last(net, net.add("max_pool", net.arranged(at, CHANNELS_LAST), **attributes), x.rank)
        return Tensor(found.node, found.axes, x.kind)
    return from_channels_last(net, net.add("avg_pool", net.arranged(at, CHANNELS_LAST), **attributes), x.rank)


def _averages(c: Call, x: Tensor) -> Tensor:
    """The means of windows of a volume, axis by axis: products with matrices whose columns are the windows."""
    count = x.rank - 2
    pads = c.attribute("pads") or (0,) * (2 * count)
    strides = c.attribute("strides") or (1,) * count
    counted = bool(c.attribute("count_include_pad", 0))
    if c.attribute("ceil_mode", 0) or c.attribute("auto_pad", "NOTSET") != "NOTSET" or max(c.attribute("dilations") or (1,)) > 1:
        raise Unsupported("windows of a volume with ceil_mode, auto_pad or dilations", "a pool of a volume is read with pads and strides")
    for axis, size in enumerate(c.attribute("kernel_shape")):
        before, after = pads[axis], pads[count + axis]
        if (size, strides[axis], before, after) == (1, 1, 0, 0):
            continue
        pixels = x.shape[axis + 2]
        starts = np.arange(0, before + pixels + after - size + 1, strides[axis])
        places = np.arange(before + pixels + after)[:, np.newaxis]
        inside = ((places >= starts) & (places < starts + size))[before : before + pixels]
        x = mixed(c.network, x, axis + 2, (inside / (size if counted else inside.sum(0))).astype(np.float32))
    return x


def _global(op: str) -> Rule:
    def rule(c: Call) -> Result:
        x = c.tensor(0)
        if x.rank == 3 and x.axes == ((0,), (1,), (2,)):
            return reduced(c.network, op, x, [2], True)
        node = channels_last(c.network, x)
        made = c.network.add("global_avg_pool", node) if op == "mean" else c.network.add(op, node, axis=(1, 2))
        return Tensor(made, ((0,), (1,), *(() for _ in range(x.rank - 2))))

    return rule


def _lrn(c: Call) -> Result:
    net, x = c.network, c.tensor(0)
    numbers = {"alpha": c.attribute("alpha", 1e-4), "beta": c.attribute("beta", 0.75), "bias": c.attribute("bias", 1.0)}
    node = net.add("lrn", channels_last(net, x), size=int(c.attribute("size")), **numbers)
    return from_channels_last(net, node, x.rank)


RULES: Mapping[str, Rule] = {
    "AveragePool": _pool,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "GlobalAveragePool": _global("mean"),
    "GlobalMaxPool": _global("max"),
    "LRN": _lrn,
    "MaxPool": _pool,
}
IMAGES = frozenset(
    (
        "ConvInteger",
        "QLinearConv",
        *RULES,
        "Resize",
        "Upsample",
        "DepthToSpace",
        "SpaceToDepth",
        "BatchNormalization",
        "InstanceNormalization",
    )
)
"""The operators whose images have channels before the pixels."""
