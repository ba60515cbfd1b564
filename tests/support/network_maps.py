"""Moves of random networks over feature maps [N, H, W, C]: convolutions, pools, branches, other arrangements of pixels."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tests.support.network_draft import Draft, Pair, Shape, activated, sizes


@dataclass(frozen=True, slots=True)
class Window:
    """A kernel's or a pool's way over an image. `sides` are top, bottom, left and right; None is "same"."""

    size: Pair
    stride: Pair
    sides: tuple[int, int, int, int] | None

    def outputs(self, height: int, width: int) -> Pair:
        """TensorFlow: SAME has ceil(size / stride) outputs, VALID ceil((size - window + 1) / stride)."""
        if self.sides is None:
            return -(-height // self.stride[0]), -(-width // self.stride[1])
        top, bottom, left, right = self.sides
        rows, columns = height + top + bottom - self.size[0] + 1, width + left + right - self.size[1] + 1
        return -(-rows // self.stride[0]), -(-columns // self.stride[1])

    @property
    def area(self) -> int:
        return self.size[0] * self.size[1]

    @property
    def padding(self) -> str:
        if self.sides is None:
            return '"same"'
        if not any(self.sides):
            return '"valid"'
        return str(self.sides[0]) if len(set(self.sides)) == 1 else f"({sizes(self.sides)})"


def pair(draft: Draft, low: int, high: int) -> Pair:
    first = draft.integer(low, high)
    return (first, first) if draft.chance(0.6) else (first, draft.integer(low, high))


def written(value: Pair) -> str:
    return str(value[0]) if value[0] == value[1] else f"({sizes(value)})"


def window(draft: Draft, image: Pair, *, pooled: bool) -> Window:
    """A window that fits the image with its padding; a pool's padding is smaller than its window."""
    size, stride = pair(draft, 2 if pooled else 1, draft.bounds.window), pair(draft, 1, 3)
    if draft.chance(0.45):
        return Window(size, stride, None)
    sides = [0] * 4
    if draft.chance(0.55):
        sides = [draft.integer(0, 2)] * 4 if draft.chance(0.4) else [draft.integer(0, 2) for _ in range(4)]
    if pooled:
        sides = [min(side, size[at // 2] - 1, image[at // 2] - 1) for at, side in enumerate(sides)]
    top, bottom, left, right = sides
    fitting = (min(size[0], image[0] + top + bottom), min(size[1], image[1] + left + right))
    return Window(fitting, stride, (top, bottom, left, right))


def convolve(draft: Draft) -> None:
    """A convolution of any kernel, with or without a bias and an activation."""
    images, height, width, channels = draft.shape
    over = window(draft, (height, width), pooled=False)
    rows = images * prod(over.outputs(height, width))
    filters = draft.channels(rows * over.area * channels, rows)
    kernel = draft.weight(*over.size, channels, filters)
    value = f"conv2d({draft.value}, {kernel}, stride={written(over.stride)}, padding={over.padding})"
    if draft.chance(0.6):
        value = f"{value} {draft.one_of('+-')} {draft.weight(filters)}"
    macs = rows * over.area * channels * filters
    draft.let(activated(draft, f"({value})"), (images, *over.outputs(height, width), filters), macs)


def convolve_and_pool(draft: Draft) -> None:
    """A layer of the tutorials: zeros around, a convolution, a pool, and only then the function."""
    images, height, width, channels = draft.shape
    rows = images * height * width
    filters = draft.channels(9 * rows * channels, rows)
    kernel, bias = draft.weight(3, 3, channels, filters), draft.weight(filters)
    value = f"conv2d(pad({draft.value}, ((0, 0), (1, 1), (1, 1), (0, 0))), {kernel}) - {bias}"
    shape = (images, -(-height // 2), -(-width // 2), filters)
    draft.let(activated(draft, f'max_pool({value}, 2, padding="same")'), shape, 9 * rows * channels * filters)


def normalise(draft: Draft) -> None:
    """Convolutions of stride 1 or 2 with batch norm, several by a loop."""
    images, height, width, _ = draft.shape
    each = prod(draft.shape) * 9
    filters = draft.channels(2 * each, images * height * width)
    stride = draft.integer(1, 2)
    first = f"{draft.name('n')}"
    value = activated(draft, draft.call("conv_bn", draft.value, filters, stride, f'"{first}"'))
    draft.let(value, (images, -(-height // stride), -(-width // stride), filters), each * filters)
    again = prod(draft.shape) * 9 * filters
    if draft.chance(0.4) and draft.affords(2 * again):
        _repeat(draft, draft.call("conv_bn", "{0}", filters, 1, f'"{first}.{{i}}"'), 2 * again)


def residual(draft: Draft) -> None:
    """Residual blocks, the first perhaps with a shortcut that strides or widens."""
    images, height, width, channels = draft.shape
    each = prod(draft.shape) * 11
    filters = channels if draft.chance(0.5) and draft.affords(2 * each * channels) else draft.channels(2 * each, images * height * width)
    stride, name = draft.integer(1, 2), draft.name("r")
    value = draft.call("block", draft.value, filters, stride, f'"{name}"', f"last={draft.chance(0.5)}")
    shape = (images, -(-height // stride), -(-width // stride), filters)
    draft.let(value, shape, each * filters + prod(shape) * filters)
    again = prod(shape) * 10 * filters
    if draft.chance(0.4) and draft.affords(2 * again):
        _repeat(draft, draft.call("block", "{0}", filters, 1, f'"{name}.{{i}}"'), 2 * again)


def _repeat(draft: Draft, call: str, macs: int) -> None:
    """Two more of a call that keeps the shape, by a loop; `{0}` in the call is the value."""
    name = draft.value
    draft.lines += ["for i in range(2):", f"    {name} = {call.replace('{0}', name)}"]
    draft.macs += macs


def pool(draft: Draft) -> None:
    images, height, width, channels = draft.shape
    over = window(draft, (height, width), pooled=True)
    arguments = [draft.value, written(over.size)]
    if over.size != over.stride or draft.chance(0.5):
        arguments.append(f"stride={written(over.stride)}")
    if over.padding != '"valid"' or draft.chance(0.5):
        arguments.append(f"padding={over.padding}")
    kind = draft.one_of(("max_pool", "max_pool", "avg_pool"))
    draft.let(f"{kind}({', '.join(arguments)})", (images, *over.outputs(height, width), channels))


def inception(draft: Draft) -> None:
    """Branches over one value, joined on the channels."""
    images, height, width, channels = draft.shape
    x, rows = draft.value, images * height * width
    narrow = draft.channels(rows * channels, rows)
    kernel = draft.weight(1, 1, channels, narrow)
    a = draft.let(activated(draft, f"conv2d({x}, {kernel})"), (images, height, width, narrow), rows * channels * narrow)
    b = draft.let(f'{draft.one_of(("max_pool", "avg_pool"))}({x}, 3, stride=1, padding="same")', (images, height, width, channels))
    parts = [(a, narrow), (b, channels), (x, channels)][: draft.integer(2, 3)]
    draft.random.shuffle(parts)
    join = f"concat([{', '.join(name for name, _ in parts)}]{draft.one_of(('', ', axis=-1', ', axis=3'))})"
    draft.let(join, (images, height, width, sum(width for _, width in parts)))


def surround(draft: Draft) -> None:
    """Zeros around a map: rows and columns of pixels, at times channels."""
    images, height, width, channels = draft.shape
    (top, bottom), (left, right) = (draft.integer(0, 2), draft.integer(0, 2)), (draft.integer(0, 2), draft.integer(0, 2))
    lanes = draft.integer(0, 3) if draft.chance(0.2) else 0
    pads = f"((0, 0), ({top}, {bottom}), ({left}, {right}), (0, {lanes}))"
    draft.let(f"pad({draft.value}, {pads})", (images, height + top + bottom, width + left + right, channels + lanes))


def fold(draft: Draft) -> None:
    """The pixels in another arrangement, or some of them as channels."""
    images, height, width, channels = draft.shape
    ways: list[Shape] = [(images, width, height, channels), (images, height * width, 1, channels), (images, 1, width, height * channels)]
    if width % 2 == 0:
        ways += [(images, height, width // 2, 2 * channels), (images, 2 * height, width // 2, channels)]
    shape = draft.one_of(ways)
    draft.let(f"reshape({draft.value}, ({sizes((*shape[:3], -1) if draft.chance(0.3) else shape)}))", shape)


def attend(draft: Draft) -> None:
    """Channels scaled by what their means say: squeeze and excitation."""
    units, channels = draft.one_of((1, 3, 4)), draft.shape[3]
    value = draft.call("excite", draft.value, units, f'"{draft.name("e")}"')
    draft.let(value, draft.shape, 2 * draft.shape[0] * channels * units)


def flatten(draft: Draft) -> None:
    """A dense layer as large as the map, or the map itself as rows."""
    width = prod(draft.shape[1:])
    if draft.chance(0.2) and width <= 64:
        draft.let(f"flatten({draft.value})", (draft.shape[0], width))
        return
    units = draft.units(draft.shape[0] * width)
    name = f'"{draft.name("d")}"'
    shape = (draft.shape[0], units)
    draft.let(activated(draft, draft.call("dense", f"flatten({draft.value})", units, name)), shape, draft.shape[0] * width * units)


def average(draft: Draft) -> None:
    draft.let(f"global_avg_pool({draft.value})", (draft.shape[0], draft.shape[3]))


def unroll(draft: Draft) -> None:
    """A map as a sequence of its rows, as in reading a line of text."""
    images, height, width, channels = draft.shape
    draft.let(f"reshape({draft.value}, ({images}, {height}, -1))", (images, height, width * channels))
