"""Accesses: what a walk of a tensor's rows shows, against NumPy's views of the numbers of the rows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.support.accesses import inner, rows_of, tensor
from tests.support.cases import each
from tests.support.examples import examples
from tpucc.ir import TensorType
from tpucc.layers.kinds import Sides
from tpucc.lowering.tensors import Access, Shape, Tensor, regrouped, whole
from tpucc.numerics import AnyArray


def sliced(data: st.DataObject, access: Access, numbers: AnyArray) -> tuple[Access, AnyArray]:
    parts = [sorted(data.draw(st.tuples(st.integers(0, size - 1), st.integers(1, size)))) for size in access.shape]
    taken = [range(first, max(last, first + 1), data.draw(st.integers(1, 3))) for first, last in parts]
    single = [axis for axis, each in enumerate(taken) if len(each) == 1]
    dropped = data.draw(st.lists(st.sampled_from(single), unique=True)) if single else []
    places = tuple(each.start if axis in dropped else slice(each.start, each.stop, each.step) for axis, each in enumerate(taken))
    return access.taken(taken, dropped), np.asarray(numbers[places])


def transposed(data: st.DataObject, access: Access, numbers: AnyArray) -> tuple[Access, AnyArray]:
    perm = data.draw(st.permutations(range(len(access.shape))))
    return access.transposed(perm), numbers.transpose(perm)


def reshaped(data: st.DataObject, access: Access, numbers: AnyArray) -> tuple[Access, AnyArray]:
    """Any factors of the number of rows. An access that says that there is none stays, and must be right about it."""
    left, shape = prod(access.shape), []
    while left > 1 and len(shape) < 4:
        shape.append(data.draw(st.sampled_from([n for n in range(1, left + 1) if left % n == 0])))
        left //= shape[-1]
    shape.append(left)
    found = access.reshaped(tuple(shape))
    expected = numbers.reshape(shape)
    if found is None:
        assert not is_walk(expected)
        return access, numbers
    return found, expected


def is_walk(numbers: AnyArray) -> bool:
    """Whether the rows advance by one step along each axis."""
    return all(len(set(np.diff(numbers, axis=axis).ravel().tolist())) <= 1 for axis in range(numbers.ndim))


View = Callable[[st.DataObject, Access, AnyArray], tuple[Access, AnyArray]]
VIEWS: list[View] = [sliced, transposed, reshaped]
GRIDS = st.lists(st.integers(1, 5), max_size=4).map(lambda sizes: tensor(*sizes))
BORDERED = st.builds(
    lambda sizes, sides: tensor(*sizes, sides=sides), st.tuples(*[st.integers(1, 5)] * 3), st.tuples(*[st.integers(0, 2)] * 4)
)


@examples(120, 5_000)
@given(GRIDS | BORDERED, st.lists(st.sampled_from(VIEWS), max_size=5), st.data())
def test_views_walk_the_rows_that_numpy_shows(
    held: Tensor, views: list[Callable[..., tuple[Access, AnyArray]]], data: st.DataObject
) -> None:
    access, numbers = whole(held), inner(held)
    for view in views:
        access, numbers = view(data, access, numbers)
        assert access.shape == numbers.shape
        np.testing.assert_array_equal(rows_of(access), numbers)
    everything = numbers.ravel().tolist() == list(range(held.rows))
    assert access.is_whole == everything


def test_a_part_in_steps_walks_the_rows_between() -> None:
    held = tensor(2, 7, 3)
    found = whole(held).taken([range(2), range(5, 0, -2), range(0, 3, 2)])
    np.testing.assert_array_equal(rows_of(found), inner(held)[:, 5:0:-2, ::2])


@examples(80, 10_000)
@given(st.lists(st.integers(1, 4), max_size=3), st.lists(st.integers(1, 4), max_size=2), st.data())
def test_broadcasts_repeat_rows_as_numpy_does(shape: list[int], leading: list[int], data: st.DataObject) -> None:
    held = tensor(*(1 if data.draw(st.booleans()) else size for size in shape))
    wanted = (*leading, *shape)
    found = whole(held).broadcast(wanted)
    assert found.shape == wanted
    np.testing.assert_array_equal(rows_of(found), np.broadcast_to(inner(held), wanted))


@examples(80, 10_000)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 6)),
    st.tuples(*[st.integers(0, 2)] * 4),
    st.tuples(st.integers(1, 3), st.integers(1, 3)),
    st.data(),
)
def test_windows_meet_the_pixels_of_the_padded_image(image: Shape, sides: Sides, stride: tuple[int, int], data: st.DataObject) -> None:
    held = tensor(*image, sides=sides)
    numbers = np.arange(held.rows).reshape(held.grid)
    top, bottom, left, right = sides
    row = data.draw(st.integers(-top, image[1] + bottom - 1))
    column = data.draw(st.integers(-left, image[2] + right - 1))
    expected = numbers[:, top + row :: stride[0], left + column :: stride[1]]
    found = whole(held).windows((row, column), stride, expected.shape[1:])
    np.testing.assert_array_equal(rows_of(found), expected)


def test_a_tensor_with_a_border_is_not_the_whole_of_its_rows() -> None:
    assert whole(tensor(2, 3, 4)).is_whole
    assert not whole(tensor(2, 3, 4, sides=(0, 1, 0, 0))).is_whole
    assert whole(tensor(2, 3, 4, sides=(1, 2, 3, 4))).start == 11 + 3
    assert tensor(2, 3, 4, sides=(1, 2, 3, 4)).rows == 2 * 6 * 11


def test_a_row_for_all_is_not_the_whole_of_its_rows() -> None:
    rows = whole(tensor(5))
    assert not rows.taken((range(2, 3),), (0,)).broadcast((5,)).is_whole


@each(
    [
        ((2, 3), (3, 1), (6,), (1,)),
        ((6,), (1,), (2, 3), (3, 1)),
        ((2, 3), (1, 2), (6,), None),
        ((2, 3), (5, 1), (6,), None),
        ((4, 3), (5, 1), (2, 2, 3), (10, 5, 1)),
        ((4, 3), (0, 1), (12,), None),
        ((4, 3), (0, 0), (12,), (0,)),
        ((2**40, 3), (3, 1), (3 * 2**40,), (1,)),
    ]
)
def test_regrouping(shape: Shape, steps: Shape, new: Shape, expected: Shape | None) -> None:
    assert regrouped(shape, steps, new) == expected


def test_sizes_of_tensors() -> None:
    held = tensor(2, 5, columns=9)
    assert (held.rows, held.items, held.columns, held.column_blocks(4)) == (10, 2, 9, 3)
    scalar = Tensor("s", TensorType("i8", ()))
    assert (scalar.rows, scalar.items, scalar.columns, whole(scalar)) == (1, 1, 1, Access(scalar, (), ()))
    assert not held.comes_from_host
    assert Tensor("i", held.type, is_input=True).comes_from_host
