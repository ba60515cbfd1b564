"""The forms that a weight has in a quantised file of ours, and the real values that all of them are of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tpucc.interop.onnx.reading.exported.shared_weights import (
    Claim,
    common_values,
    of_bias,
    of_columns,
    of_elements,
    of_held,
    of_one_bias,
    of_values,
)
from tpucc.interop.onnx.reading.files.model import Weight
from tpucc.interop.onnx.scales import Use
from tpucc.ir.dtypes import IntegerFormat
from tpucc.ir.types import Quantisation
from tpucc.numerics import AnyArray, Float32
from tpucc.ops.onnx_form import CHANNELS_FIRST, CHANNELS_LAST

KERNEL_OF_ONNX = (3, 2, 0, 1)
"""Where ONNX's kernels have the axes of the source's."""


@dataclass(frozen=True)
class Shared:
    """A weight with the values that several of its forms are of; in this one it `is_turned`, transposed."""

    weight: Weight
    values: Float32
    is_turned: bool

    def of_product(self, form: AnyArray, is_kernel: bool) -> Float32:
        """The values in the shape that this form, the weights of a product, has as the source's: the source's own, or one that differs by
        axes of size 1. A kernel is [height, width, channels, columns]."""
        if self.is_turned:
            return self.values.T
        return self.values.reshape(form.transpose(np.argsort(KERNEL_OF_ONNX)).shape if is_kernel else form.shape)

    def laid_as(self, form: AnyArray) -> Float32:
        """The values with the axes of a constant, images with their channels first."""
        if form.ndim != len(CHANNELS_LAST):
            return self.values.reshape(form.shape)
        return self.values.reshape(form.transpose(CHANNELS_LAST).shape).transpose(CHANNELS_FIRST)


@dataclass
class Forms:
    """What layers demand of constants, by the names of these."""

    products: dict[str, list[Use]] = field(default_factory=dict)
    kernels: set[str] = field(default_factory=set)
    """The weights of convolutions among them."""
    elements: dict[str, list[Use]] = field(default_factory=dict)
    zeros: dict[str, int] = field(default_factory=dict)
    """The zero points of those that stand beside values of one scale."""
    held: dict[str, list[Quantisation]] = field(default_factory=dict)
    """The scales and zero points of those that stand side by side with values."""
    biases: dict[str, list[tuple[AnyArray, float, Float32]]] = field(default_factory=dict)
    """Integers in units of a value's scale times those of columns of weights."""
    numbers: dict[Weight, list[Float32]] = field(default_factory=dict)
    """Those of functions, by the weights that they are."""

    def shared(self, constants: Mapping[str, AnyArray], weights: Mapping[str, Weight], of: IntegerFormat) -> dict[str, Shared]:
        """The weights that have several forms of the same values, by the names of these. `weights` are what constants are forms of."""
        names: dict[Weight, list[str]] = {weight.plain: [] for weight in (*self.numbers, *weights.values())}
        for name, weight in weights.items():
            names[weight.plain].append(name)
        found: dict[str, Shared] = {}
        for weight, own in names.items():
            count = len(self.numbers.get(weight, ())) + sum(self._count(name, constants[name]) for name in own)
            if count > 1 or any(weights[name].is_turned for name in own):  # claims take more room than weights
                forms = [_Form("", of_values(number), is_turned=False) for number in self.numbers.get(weight, ())]
                forms += [
                    _Form(name, claim, weights[name].is_turned)
                    for name in own
                    for claim in self._claims(name, constants[name], weights[name], of)
                ]
                found |= _agreeing(weight, forms)
        return found

    def _count(self, name: str, array: AnyArray) -> int:
        """How many forms a constant is."""
        several = (self.elements, self.held, self.biases)
        return (name in self.products) + (array.dtype == np.float32) + sum(len(uses.get(name, ())) for uses in several)

    def _claims(self, name: str, array: AnyArray, weight: Weight, of: IntegerFormat) -> Iterator[Claim]:
        """What each form that a constant is says of a weight."""
        if not array.size or (name in self.kernels and array.ndim != len(KERNEL_OF_ONNX)):  # files may say anything
            return
        if array.dtype == np.float32:
            yield of_values(array)
        if name in self.products:
            matrix = array.transpose(np.argsort(KERNEL_OF_ONNX)) if name in self.kernels else array
            if (claim := of_columns(matrix, self.products[name])) is not None:
                yield claim
        last = array.transpose(CHANNELS_LAST) if array.ndim == len(CHANNELS_LAST) else array
        yield from (of_held(last, held, of) for held in self.held.get(name, ()))
        found = (of_elements(last, self.zeros[name], [use], of) for use in self.elements.get(name, ()))
        yield from (claim for claim in found if claim is not None)
        biases = self.biases.get(name, ())
        yield from (of_one_bias(*form, weight.is_subtracted) if weight.is_single else of_bias(*form) for form in biases)


@dataclass(frozen=True)
class _Form:
    """What a form says of a weight, or of the transposed one."""

    name: str
    claim: Claim
    is_turned: bool


def _agreeing(weight: Weight, forms: Sequence[_Form]) -> dict[str, Shared]:
    """Those of the forms that have values in common with the first; none if that is alone, as the source has it."""
    placed = [found for form in forms if (found := _placed(form, weight.shape)) is not None]
    values = common_values([form.claim for form in placed]) if placed else None
    if values is None:
        placed, values = _first_agreeing(placed)
    if values is None or (len(placed) < 2 and not placed[0].is_turned):
        return {}
    return {form.name: Shared(weight, values, form.is_turned) for form in placed if form.name}


def _first_agreeing(forms: Sequence[_Form]) -> tuple[list[_Form], Float32 | None]:
    """The first form, and those that have values in common with it and one another."""
    agreed: list[_Form] = []
    values: Float32 | None = None
    for form in forms:
        if (common := common_values([*(other.claim for other in agreed), form.claim])) is not None:
            agreed.append(form)
            values = common
    return agreed, values


def _placed(form: _Form, shape: tuple[int, ...]) -> _Form | None:
    """The form of a weight of this shape: as it is, but for axes of size 1, or transposed; None where it has other sizes."""
    own, claim = form.claim.bounds.low.shape, form.claim
    if form.is_turned:
        return replace(form, claim=claim.arranged(np.transpose, np.transpose)) if own[::-1] == shape and len(own) == 2 else None
    if _sizes(own) != _sizes(shape):
        return None
    return replace(form, claim=claim.arranged(lambda array: array.reshape(shape), lambda array: array.reshape(own)))


def _sizes(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)
