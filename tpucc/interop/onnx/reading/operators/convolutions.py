"""Convolutions and pools: [N, C, H, W] in the file, [N, H, W, C] in tpucc; a sequence [N, C, L] is an image of height 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tpucc.interop.onnx.reading.building.call import Call, Result
from tpucc.interop.onnx.reading.building.network import Network
from tpucc.interop.onnx.reading.building.values import Static, Tensor, Value, axes_of
from tpucc.interop.onnx.reading.files.problems import Unsupported, require
from tpucc.interop.onnx.reading.operators.places import mixed
from tpucc.interop.onnx.reading.operators.reductions import reduced
from tpucc.interop.onnx.reading.operators.rows import Fact, Ints, Positive, operator
from tpucc.ir import Node
from tpucc.numerics import AnyArray

CHANNELS_LAST = (0, 2, 3, 1)


@dataclass(frozen=True)
class WindowAttributes:
    """What nodes say of windows: numbers for each axis of pixels, none of which are all 1, and of pads all 0."""

    auto_pad: Literal["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"] = "NOTSET"
    dilations: Ints = ()
    kernel_shape: Ints = ()
    pads: Ints = ()
    strides: Ints = ()

    @property
    def has_auto_pad(self) -> bool:
        return self.auto_pad not in ("NOTSET", "")

    def require(self, x: Tensor, output_padding: Ints = ()) -> None:
        """Raises `Misfit` for an image without pixels, and for numbers of windows that aren't those of its axes of pixels."""
        count = x.rank - 2
        require(count > 0 and not (self.has_auto_pad and self.pads))
        for numbers, each, least in (
            *((numbers, 1, 1) for numbers in (self.kernel_shape, self.strides, self.dilations)),
            (self.pads, 2, 0),
            (output_padding, 1, 0),
        ):
            require(len(numbers) in (0, each * count) and min(numbers, default=least) >= least)

    def of(self, x: Tensor, size: Ints) -> Windows:
        """The windows of this size over an image `x` [N, C, H, W]."""
        require(bool(size))
        made = Windows(pair(size), pair(self.strides), sides(self.pads), pair(self.dilations))
        return replace(made, padding=_padding(self.auto_pad, x.shape[2:], made)) if self.has_auto_pad else made


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


def require_channels(x: Tensor, w: Value, bias: Value | None, group: int, kernel_shape: Ints, transposed: bool = False) -> None:
    """Raises `Misfit` for weights [filters, channels / group, …] that aren't those of an image, of a transposed convolution
    [channels, filters / group, …]."""
    shape = w.shape
    require(len(shape) == x.rank > 2 and kernel_shape in ((), shape[2:]))
    channels, filters = (shape[0], shape[1] * group) if transposed else (shape[1] * group, shape[0])
    require(x.shape[1] == channels and (channels if transposed else filters) % group == 0)
    require(bias is None or bias.shape == (filters,))


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


def pair(numbers: Ints, missing: int = 1) -> tuple[int, int]:
    """(height, width): a sequence has no height, and what a node doesn't say is `missing`."""
    height, width = (missing, missing, *numbers)[-2:]
    return height, width


def sides(pads: Ints) -> tuple[int, int, int, int]:
    """ONNX's (begins…, ends…) as (top, bottom, left, right)."""
    (top, left), (bottom, right) = (pair(half, 0) for half in (pads[: len(pads) // 2], pads[len(pads) // 2 :]))
    return top, bottom, left, right


def _padding(rule: str, sizes: Sequence[int], made: Windows) -> tuple[int, int, int, int]:
    """The padding by a rule, so that each stride of the image has a window; VALID has none."""
    found: list[int] = []
    for size, stride, extent in zip(sizes, made.stride, made.extent, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + extent - size) if rule != "VALID" else 0
        found += [total // 2, total - total // 2] if rule == "SAME_UPPER" else [total - total // 2, total // 2]
    return found[0], found[1], found[2], found[3]


def short_padding(padding: tuple[int, int, int, int]) -> Any:
    """As a person writes it: "valid", one number, or all four."""
    if len(set(padding)) == 1:
        return padding[0] or "valid"
    return padding


def short(numbers: tuple[int, int]) -> Any:
    return numbers[0] if numbers[0] == numbers[1] else numbers


@operator("Conv", Fact.IMAGES)
def conv(c: Call, x: Tensor, w: Value, bias: Value | None, *, group: Positive = 1, windows: WindowAttributes) -> Result:
    net = c.net
    require_channels(x, w, bias, group, windows.kernel_shape)
    windows.require(x)
    at, shape = image(net, x), _kernel_shape(w)
    along = short if x.rank == 4 else max  # of a sequence, whose height is 1, the width's number does for both
    made = windows.of(at, shape[2:])
    require_fit(at, made)
    weight = net.parameter(net.reshaped(w, shape).turned((2, 3, 1, 0)))
    attributes: dict[str, Any] = {
        "stride": along(made.stride),
        "padding": short_padding(made.padding),
        "dilation": along(made.dilation),
        "groups": group,
    }
    node = net.add("conv2d", net.arranged(at, CHANNELS_LAST), weight, **attributes)
    return from_channels_last(net, biased(net, node, bias), x.rank)


def _kernel_shape(kernel: Value) -> tuple[int, ...]:
    """That of a kernel with four axes; one of a sequence has the height 1."""
    shape = kernel.shape if len(kernel.shape) != 3 else (*kernel.shape[:2], 1, kernel.shape[2])
    if len(shape) != 4:
        raise Unsupported(f"a kernel of {len(shape)} axes")
    return shape


def biased(net: Network, node: Node, bias: Value | None) -> Node:
    """A node with a bias, one value a channel."""
    return node if bias is None else net.add("add", node, net.parameter(bias))


@operator("ConvTranspose", Fact.IMAGES)
def conv_transpose(
    c: Call,
    x: Tensor,
    w: Value,
    bias: Value | None,
    *,
    group: Positive = 1,
    output_padding: Ints = (),
    output_shape: Ints = (),
    windows: WindowAttributes,
) -> Result:
    """Groups become zeros in the kernel, and so do dilation and what is added to the result's end."""
    net, strides, dilations = c.net, windows.strides, windows.dilations
    require_channels(x, w, bias, group, windows.kernel_shape, transposed=True)
    windows.require(x, output_padding)
    ones = (1,) * len(output_padding)
    require(all(more < max(both) for more, *both in zip(output_padding, strides or ones, dilations or ones, strict=False)))
    require(len(output_shape) in (0, x.rank - 2, x.rank))
    at, shape = image(net, x), _kernel_shape(w)
    made, behind = Windows(pair(shape[2:]), pair(strides), sides(windows.pads), pair(dilations)), pair(output_padding, 0)
    stride, between, extent = made.stride, made.dilation, made.extent
    wanted = pair(output_shape[2 - x.rank :]) if output_shape else (None, None)
    axes = zip(at.shape[2:], extent, stride, (made.padding[:2], made.padding[2:]), behind, wanted, strict=True)
    (top, bottom, below), (left, right, beside) = (_cut(windows.auto_pad, *axis) for axis in axes)
    padding, beyond = (top, bottom, left, right), (below, beside)
    if isinstance(w, Static):
        if group > 1 or between != (1, 1) or any(beyond):
            sizes = (size + more for size, more in zip(extent, beyond, strict=True))
            net.require_room(math.prod((shape[0], shape[1] * group, *sizes)))
        kernel = _dilated(_ungrouped(w.array.reshape(shape), group), between)
        kernel = np.pad(kernel, ((0, 0), (0, 0), *((0, more) for more in beyond)))
        w, shape = Static(kernel, w.name), kernel.shape
    elif group > 1 or between != (1, 1) or any(beyond):
        raise Unsupported(
            "its kernel is computed and would get zeros: it has groups, dilation or a larger result",
            "make the kernel a constant of the file",
        )
    weight = net.parameter(net.reshaped(w, shape).turned((2, 3, 0, 1)))
    node = net.add("conv_transpose2d", net.arranged(at, CHANNELS_LAST), weight, stride=short(stride), padding=short_padding(padding))
    return from_channels_last(net, biased(net, node, bias), x.rank)


def _ungrouped(w: AnyArray, groups: int) -> AnyArray:
    """A kernel [C, F/groups, H, W] as one of all channels, with zeros between the groups."""
    channels, filters = w.shape[0] // groups, w.shape[1]
    whole = np.zeros((w.shape[0], filters * groups, *w.shape[2:]), w.dtype)
    for group in range(groups):
        rows = slice(group * channels, (group + 1) * channels)
        whole[rows, group * filters : (group + 1) * filters] = w[rows]
    return whole


def _dilated(w: AnyArray, apart: tuple[int, int]) -> AnyArray:
    wide = np.zeros((*w.shape[:2], *((size - 1) * step + 1 for size, step in zip(w.shape[2:], apart, strict=True))), w.dtype)
    wide[:, :, :: apart[0], :: apart[1]] = w
    return wide


def _cut(rule: str, size: int, window: int, stride: int, pads: tuple[int, ...], behind: int, wanted: int | None) -> tuple[int, int, int]:
    """What is cut off tpucc's whole result of a transposed convolution before and after an axis, and what the kernel must grow by where
    that is too small. `behind` is what is added behind the windows, and `wanted` the size of the result if it is said.

    `rule` never adds padding below 0, as in ONNX's shape inference and in ONNX Runtime: of a kernel smaller than the stride the result
    ends with the last window. A larger size that is said has zeros behind it.
    """
    windows = (size - 1) * stride + window
    before, after = pads
    if wanted is not None and wanted - windows >= stride:
        most = windows + stride - 1
        raise Unsupported(f"an output_shape with {wanted:,} pixels along an axis", f"of this input it has at most {most:,}")
    if wanted is not None or rule in ("SAME_UPPER", "SAME_LOWER"):
        total = max(0, windows + behind - (size * stride if wanted is None else wanted))
        behind = behind if wanted is None else max(behind, wanted - windows)
        before, after = (total // 2, total - total // 2) if rule == "SAME_UPPER" else (total - total // 2, total // 2)
    after += max(window, stride) - window - behind
    return before, max(0, after), max(0, -after) + (stride - window if after < 0 and window < stride else 0)


@operator("MaxPool", Fact.IMAGES, Fact.KEEPS, ignored="storage_order")
def max_pool(c: Call, x: Tensor, *, ceil_mode: bool = False, windows: WindowAttributes) -> Result:
    windows.require(x)
    at = image(c.net, x)
    made = _pool(c, at, "max_pool", _with_a_window(at, windows.of(at, windows.kernel_shape)), ceil_mode)
    found = from_channels_last(c.net, made, x.rank)
    return Tensor(found.node, found.axes, x.kind)


def _with_a_window(x: Tensor, made: Windows) -> Windows:
    """Where less than a stride of an image is missing for the first window, ONNX's formula gives none, and ONNX Runtime one: over the edge,
    behind which nothing is larger."""
    top, bottom, left, right = made.padding
    missing = [made.extent[axis] - x.shape[axis + 2] - sum(made.padding[2 * axis : 2 * axis + 2]) for axis in range(2)]
    below, behind = (max(0, more) if more < stride else 0 for more, stride in zip(missing, made.stride, strict=True))
    return replace(made, padding=(top, bottom + below, left, right + behind))


@operator("AveragePool", Fact.IMAGES)
def average_pool(c: Call, x: Tensor, *, ceil_mode: bool = False, count_include_pad: bool = False, windows: WindowAttributes) -> Result:
    windows.require(x)
    if x.rank > 4:
        if ceil_mode or windows.has_auto_pad or max(windows.dilations or (1,)) > 1:
            what = "windows of a volume with ceil_mode, auto_pad or dilations"
            raise Unsupported(what, "a pool of a volume is read with pads and strides")
        return _averages(c.net, x, windows.kernel_shape, windows.strides, windows.pads, count_include_pad)
    at = image(c.net, x)
    made = windows.of(at, windows.kernel_shape)
    counts = {"count_padding": count_include_pad and any(made.padding)}
    return from_channels_last(c.net, _pool(c, at, "avg_pool", made, ceil_mode, **counts), x.rank)


def _pool(c: Call, at: Tensor, op: str, made: Windows, ceil: bool, **more: bool) -> Node:
    """A pool of an image [N, C, H, W], as tpucc's operator."""
    c.alone()
    require_fit(at, made, ceil=ceil)
    if made.dilation != (1, 1):
        raise Unsupported("windows with dilation", "tpucc's pools have none")
    attributes: dict[str, Any] = {"size": short(made.size), "padding": short_padding(made.padding), "ceil": ceil, **more}
    if made.stride != made.size:
        attributes["stride"] = short(made.stride)
    return c.net.add(op, c.net.arranged(at, CHANNELS_LAST), **attributes)


def _averages(net: Network, x: Tensor, kernel_shape: Ints, strides: Ints, pads: Ints, with_padding: bool) -> Tensor:
    """The means of windows of a volume, axis by axis: products with matrices whose columns are the windows."""
    count = x.rank - 2
    pads, strides = pads or (0,) * (2 * count), strides or (1,) * count
    for axis, size in enumerate(kernel_shape):
        before, after = pads[axis], pads[count + axis]
        if (size, strides[axis], before, after) == (1, 1, 0, 0):
            continue
        pixels = x.shape[axis + 2]
        starts = np.arange(0, before + pixels + after - size + 1, strides[axis])
        places = np.arange(before + pixels + after)[:, np.newaxis]
        inside = ((places >= starts) & (places < starts + size))[before : before + pixels]
        x = mixed(net, x, axis + 2, (inside / (size if with_padding else inside.sum(0))).astype(np.float32))
    return x


def global_pool(c: Call, x: Tensor, op: str) -> Tensor:
    """A pool of whole images."""
    if x.rank == 3 and x.axes == ((0,), (1,), (2,)):
        return reduced(c.net, op, x, [2], True)
    node = channels_last(c.net, x)
    made = c.net.add("global_avg_pool", node) if op == "mean" else c.net.add(op, node, axis=(1, 2))
    return Tensor(made, ((0,), (1,), *(() for _ in range(x.rank - 2))))


@operator("GlobalAveragePool", Fact.IMAGES)
def global_average_pool(c: Call, x: Tensor) -> Result:
    return global_pool(c, x, "mean")


@operator("GlobalMaxPool", Fact.IMAGES, Fact.KEEPS)
def global_max_pool(c: Call, x: Tensor) -> Result:
    return global_pool(c, x, "max")


@operator("LRN", Fact.IMAGES)
def response_norm(c: Call, x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Result:
    require(size > 0 and size % 2 == 1)
    node = c.net.add("lrn", channels_last(c.net, x), size=size, alpha=alpha, beta=beta, bias=bias)
    return from_channels_last(c.net, node, x.rank)
