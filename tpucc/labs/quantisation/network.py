"""The digits network of `programs/`, computed with a submission's integers: how much of its float32 result they keep."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

import numpy as np

from tpucc.floating.arithmetic import PORTABLE
from tpucc.interop.programs import example
from tpucc.labs.lab import Submission
from tpucc.labs.quantisation.rules import Rules, nearest_integers, nearest_weights, pair
from tpucc.numerics import AnyArray, Float32
from tpucc.plugins.failures import Failed

LAYERS = ("fc1", "fc2", "fc3")
TENSORS = ("image", *LAYERS)
IMAGES = 100
DEFECTS = 2000
"""One sample in so many is a defect."""


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """The network with its layers' weights and biases multiplied by factors, which a ReLU lets through; float32.

    `samples` are the values of the image and of each layer's result for the calibration images, `meant` those for the images to run.
    """

    weights: tuple[Float32, ...]
    biases: tuple[Float32, ...]
    samples: tuple[Float32, ...]
    meant: tuple[Float32, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """What a submission made of a network: the signal-to-noise ratio of its last layer, and the range of each tensor's integers."""

    ratio: float
    ranges: tuple[tuple[float, float], ...]


def network(draw: Random | None = None) -> Network:
    """The network as it comes; or with factors and images that are drawn."""
    weights, calibration, held_out = _data()
    factors = [draw.uniform(0.2, 5) if draw else 1.0 for _ in TENSORS]
    chosen = draw.sample(range(len(held_out)), IMAGES) if draw else range(IMAGES)
    scaled, biases, size = [], [], factors[0]
    for layer, factor in zip(LAYERS, factors[1:], strict=True):
        size *= factor
        scaled.append((weights[f"{layer}.w"] * factor).astype(np.float32))
        biases.append((weights[f"{layer}.b"] * size).astype(np.float32))
    samples, meant = (_values((images * factors[0]).astype(np.float32), scaled, biases) for images in (calibration, held_out[list(chosen)]))
    return Network(tuple(scaled), tuple(biases), samples, meant)


def spoilt(samples: Float32, draw: Random) -> Float32:
    """Samples with defects: one in `DEFECTS` is many times too large, and of either sign."""
    found, largest = samples.copy(), float(np.abs(samples).max())
    for place in draw.sample(range(samples.size), samples.size // DEFECTS):
        found.flat[place] = draw.choice((-1, 1)) * draw.uniform(10, 60) * largest
    return found


def run(rules: Rules, net: Network, samples: tuple[Float32, ...], submission: Submission) -> Run:
    """The network with integers, each step asked of the submission. Raises `Failed` for an answer that isn't what the rules say."""
    found = [pair(submission.call("calibrate", held), rules) for held in samples]
    (scale, zero), *others = found
    values = nearest_integers(rules, "quantise", submission, net.meant[0], scale, zero)
    for n, (result_scale, result_zero) in enumerate(others):
        weights, weight_scales = nearest_weights(rules, submission, net.weights[n])
        bias = np.rint(net.biases[n] / (np.float64(scale) * weight_scales))
        sums = np.clip((values - zero) @ weights + bias, -(2**31), 2**31 - 1).astype(np.int32)
        with np.errstate(over="ignore", under="ignore"):
            multiplier = (np.float32(scale) * weight_scales / np.float32(result_scale)).astype(np.float32)
        if not np.isfinite(multiplier).all():
            message = (
                f"the scales {scale:g} of {TENSORS[n]} and {result_scale:g} of {TENSORS[n + 1]} are so far apart that no float32 multiplies"
            )
            raise Failed("wrong", message)
        values = nearest_integers(rules, "requantise", submission, sums, multiplier, result_zero)
        if n < len(others) - 1:
            values = np.maximum(values, result_zero)  # ReLU
        scale, zero = result_scale, result_zero
    ratio = decibels(net.meant[-1], (values - zero) * scale)
    return Run(ratio, tuple(((rules.low - zero) * scale, (rules.high - zero) * scale) for scale, zero in found))


def decibels(meant: AnyArray, found: AnyArray) -> float:
    """The signal-to-noise ratio, 10·log₁₀ of the quotient of the sums of squares."""
    signal, noise = (float(np.square(x, dtype=np.float64).sum()) for x in (meant, found - meant))
    return float(10 * np.log10(signal / max(noise, 1e-30)))


@cache
def _data() -> tuple[dict[str, Float32], Float32, Float32]:
    """Weights, calibration images and held-out images of the digits."""
    weights, calibration, held_out = example("digits_mlp").data[:3]
    with np.load(weights) as of_layers, np.load(calibration) as first, np.load(held_out) as second:
        return dict(of_layers), first["image"], second["image"]


def _values(images: Float32, weights: list[Float32], biases: list[Float32]) -> tuple[Float32, ...]:
    values = [images]
    for n, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        result = PORTABLE.product(values[-1], weight) + bias
        values.append(np.maximum(result, 0) if n < len(weights) - 1 else result)
    return tuple(values)
