"""Moves of random networks that leave pixels as they are: over values of any rank, sequences [N, T, F], and rows [N, K]."""

from __future__ import annotations

from math import prod

from tests.support.network_draft import Draft, activated, sizes

SCALARS = ("{} * 0.5", "{} + 1.0", "2.0 - {}", "-{}", "{} - 0.25", "{} * -1.5")
SUMS = ("relu({} + {})", "{} + {}", "relu({} - {})", "tanh({} + {})", "relu6({1} + {0})")
CELLS = (("lstm", 2), ("late_lstm", 2), ("gru", 1), ("rnn", 1))
"""Recurrent cells and how many states each has."""


# any rank


def dense(draft: Draft) -> None:
    """A product with the last axis, which leaves the others alone."""
    rows = prod(draft.shape[:-1])
    units = draft.units(rows * draft.shape[-1])
    value = draft.call("dense", draft.value, units, f'"{draft.name("d")}"')
    draft.let(activated(draft, value), (*draft.shape[:-1], units), rows * draft.shape[-1] * units)


def element_wise(draft: Draft) -> None:
    """A function, a scalar, or a vector of one number a channel."""
    way = draft.integer(0, 3)
    if way == 0:
        value = activated(draft, draft.value)
    elif way == 1:
        value = draft.one_of(SCALARS).format(draft.value)
    elif way == 2:
        value = f"{draft.value} {draft.one_of('+-*')} ({draft.weight(draft.shape[-1])} - 1.0)"
    else:
        vectors = ", ".join(draft.weight(draft.shape[-1]) for _ in range(4))
        value = activated(draft, f"batch_norm({draft.value}, {vectors})")
    draft.let(value, draft.shape)


def combine(draft: Draft) -> None:
    """The current value with an earlier one of its shape, or with a function of itself."""
    other = draft.one_of(draft.partners(draft.shape))
    if other == draft.value and draft.chance(0.7):
        other = draft.one_of(("sigmoid({})", "tanh({})", "relu({})")).format(other)
    value = f"{draft.value} * {other}" if draft.chance(0.35) else draft.one_of(SUMS).format(draft.value, other)
    draft.let(value, draft.shape)


def soften(draft: Draft) -> None:
    """A softmax or a layer norm in the middle: work for the host."""
    if draft.chance(0.5):
        draft.let(f"softmax({draft.value})", draft.shape)
    else:
        draft.let(f"layer_norm({draft.value}, {draft.weight(draft.shape[-1])}, {draft.weight(draft.shape[-1])})", draft.shape)


def compare_steps(draft: Draft) -> None:
    """Attention of a sequence to itself: products of computed values."""
    images, steps, features = draft.shape
    turned = f"transpose({draft.value}, (0, 2, 1))"
    draft.let(f"softmax({draft.value} @ {turned}) @ {draft.value}", draft.shape, 2 * images * steps * steps * features)


def take_every(draft: Draft) -> None:
    """Every other place, or fewer, of one axis, also backwards."""
    axis, step = draft.integer(1, len(draft.shape) - 1), draft.one_of((-3, -2, -1, 2, 2, 3))
    left = len(range(0, draft.shape[axis], abs(step)))
    index = ", ".join([*[":"] * axis, f"::{step}"])
    draft.let(f"{draft.value}[{index}]", (*draft.shape[:axis], left, *draft.shape[axis + 1 :]))


def split_and_join(draft: Draft) -> None:
    """Two parts along the last axis, of which the second comes first afterwards."""
    first = draft.integer(1, draft.shape[-1] - 1)
    a, b = draft.name(), draft.name()
    draft.lines.append(f"{a}, {b} = split({draft.value}, [{first}, {draft.shape[-1] - first}], axis=-1)")
    draft.let(f"concat([{b}, {a}])", draft.shape)


def mix(draft: Draft) -> None:
    """A product over the rows instead of the lanes, as in MLP-Mixer: between two transpositions."""
    images, rows, lanes = draft.shape[0], prod(draft.shape[1:-1]), draft.shape[-1]
    x = draft.value if len(draft.shape) == 3 else f"reshape({draft.value}, ({images}, {rows}, {lanes}))"
    weight, macs = draft.weight(rows, rows), images * rows * rows * lanes
    value = f"transpose(transpose({x}, (0, 2, 1)) @ {weight}, (0, 2, 1))"
    draft.let(value if len(draft.shape) == 3 else f"reshape({value}, ({sizes(draft.shape)}))", draft.shape, macs)


def stack(draft: Draft) -> None:
    """Two values one below or beside the other: a part of the current one, or one of the same shape, goes on top."""
    axis, shape = draft.integer(1, len(draft.shape) - 2), draft.shape
    size = draft.integer(1, shape[axis])
    part = f"{draft.one_of(draft.partners(shape))}[{':, ' * axis}:{size}]"
    operands = [part, draft.value] if draft.chance(0.5) else [draft.value, part]
    draft.let(f"concat([{', '.join(operands)}], axis={axis})", (*shape[:axis], shape[axis] + size, *shape[axis + 1 :]))


def crop(draft: Draft) -> None:
    """A part of each axis but the first, or of one."""
    shape, only = draft.shape, draft.integer(1, len(draft.shape) - 1) if draft.chance(0.6) else None
    parts, left = [":"], [shape[0]]
    for axis, size in enumerate(shape[1:], 1):
        start, stop = (0, size) if only not in (None, axis) else sorted((draft.integer(0, size - 1), draft.integer(1, size)))
        stop += start == stop
        parts.append(_bounds(draft, start, stop, size))
        left.append(stop - start)
    draft.let(f"{draft.value}[{', '.join(parts)}]", tuple(left))


def _bounds(draft: Draft, start: int, stop: int, size: int) -> str:
    """`start:stop` in one of its ways: an open end, or a negative one."""
    first = "" if start == 0 and draft.chance(0.5) else str(start - size) if start and draft.chance(0.2) else str(start)
    last = "" if stop == size and draft.chance(0.5) else str(stop - size) if stop < size and draft.chance(0.2) else str(stop)
    return f"{first}:{last}"


def turn(draft: Draft) -> None:
    """The axes in another order: pixels alone, or, at times, channels too."""
    inner = list(range(1, len(draft.shape) - 1))[::-1]
    order = [0, *inner, len(draft.shape) - 1]
    if len(inner) == 1 or draft.chance(0.25):
        order = [0, len(draft.shape) - 1, *sorted(inner)]
    draft.let(f"transpose({draft.value}, ({sizes(order)}))", tuple(draft.shape[axis] for axis in order))


# sequences


def recur(draft: Draft) -> None:
    """A recurrent cell over all steps, forwards or backwards; the last state stays."""
    sequence, steps = draft.value, draft.shape[1]
    cell, states = _states(draft)
    order = f"range({steps})" if draft.chance(0.7) else f"range({steps - 1}, -1, -1)"
    draft.lines += [f"for t in {order}:", f"    {', '.join(states)} = {draft.call(cell, f'{sequence}[:, t]', *states, _named(draft))}"]
    draft.keep(states[0], draft.shapes[states[0]])


def recur_throughout(draft: Draft) -> None:
    """A recurrent cell whose states at all steps are a sequence again."""
    sequence, (images, steps, _) = draft.value, draft.shape
    cell, states = _states(draft)
    shape, all_steps = draft.shapes[states[0]], draft.name()
    row = f"reshape({states[0]}, ({images}, 1, {shape[1]}))"
    draft.lines += [
        f"for t in range({steps}):",
        f"    {', '.join(states)} = {draft.call(cell, f'{sequence}[:, t]', *states, _named(draft))}",
        "    if t == 0:",
        f"        {all_steps} = {row}",
        "    else:",
        f"        {all_steps} = concat([{all_steps}, {row}], axis=1)",
    ]
    draft.keep(all_steps, (images, steps, shape[1]))


def _states(draft: Draft) -> tuple[str, list[str]]:
    """A cell and the names of its first states, zeros or halves; its multiply-accumulates are counted."""
    cell, count = draft.one_of(CELLS)
    images, steps, features = draft.shape
    units = draft.one_of([n for n in draft.bounds.units if draft.affords(steps * images * 4 * n * (features + n))] or (1,))
    shape = (images, units)
    states = [draft.let(f"zeros([batch, {units}])" if draft.chance(0.8) else f"ones([batch, {units}]) * 0.5", shape) for _ in range(count)]
    draft.macs += steps * images * 4 * units * (features + units)
    return cell, states


def _named(draft: Draft) -> str:
    return f'"{draft.name("c")}"'


def step(draft: Draft) -> None:
    """One step of the sequence."""
    images, steps, features = draft.shape
    draft.let(f"{draft.value}[:, {draft.integer(-steps, steps - 1)}]", (images, features))


def unfold(draft: Draft) -> None:
    """A sequence as a map of one column."""
    images, steps, features = draft.shape
    draft.let(f"reshape({draft.value}, ({images}, {steps}, 1, {features}))", (images, steps, 1, features))


# rows


def gate(draft: Draft) -> None:
    """Halves of one product, one gating the other."""
    rows, width = draft.shape
    units = draft.units(2 * rows * width)
    z = draft.let(draft.call("dense", draft.value, 2 * units, _named(draft)), (rows, 2 * units), 2 * rows * width * units)
    draft.let(f"sigmoid({z}[:, :{units}]) * tanh({z}[:, {units}:])", (rows, units))


def carry(draft: Draft) -> None:
    """A highway layer."""
    draft.let(draft.call("highway", draft.value, _named(draft)), draft.shape, 2 * prod(draft.shape) * draft.shape[1])


def append(draft: Draft) -> None:
    """Other rows of this batch on the right."""
    others = [name for name, shape in draft.shapes.items() if len(shape) == 2 and shape[0] == draft.shape[0]]
    other = draft.one_of(others)
    width = draft.shape[1] + draft.shapes[other][1]
    draft.let(f"concat([{draft.value}, {other}])", (draft.shape[0], width))


def raise_to_map(draft: Draft) -> None:
    """Rows as small images."""
    rows, width = draft.shape
    height = next((n for n in (4, 3, 2) if width % n == 0), 1)
    shape = (rows, height, 1, width // height) if draft.chance(0.5) else (rows, height, width // height, 1)
    draft.let(f"reshape({draft.value}, ({sizes(shape)}))", shape)
