"""Random sources of dense networks with a `train`, of ragged sizes, for the training machine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

SIZES = (1, 3, 4, 17, 32, 127, 128, 129, 200, 300)
ACTIVATIONS = ("relu({})", "sigmoid({})", "tanh({})", "gelu({})", "silu({})", "elu({})", "leaky_relu({})", "relu6({})", "{}", "abs({})")
MIXED = (
    "{h} * {s} + {b}",
    "({h} - mean({h}, axis=-1, keepdims=True)) * {s}",
    "where({h} > {b}, {h}, 0.5 * {h})",
    "maximum({h}, {b}) + clip({h}, low=-0.5, high=0.5)",
    "sqrt({h} * {h} + 1.0) / (exp(0.1 * {h}) + {s} * {s})",
    "layer_norm({h}, {s}, {b})",
)
OPTIMIZERS = ("sgd(rate=0.05)", "momentum(rate=0.02)", "rmsprop(rate=0.01)", "adam(rate=0.01)")


def random_source(seed: int) -> tuple[str, int]:
    """A source, and the microbatches of its training."""
    draw = np.random.default_rng(seed)

    def one_of(things: tuple[str, ...]) -> str:
        return str(things[draw.integers(len(things))])

    sizes = [int(draw.choice(SIZES)) for _ in range(int(draw.integers(2, 5)))]
    microbatches = int(draw.choice([1, 1, 2, 4]))
    batch = microbatches * int(draw.choice([1, 2, 5, 33, 64, 130]))
    lines, h = [], "x"
    for layer, (wide, units) in enumerate(pairwise(sizes)):
        lines += [f'weight w{layer}: f32[{wide}, {units}] = "w{layer}"', f'weight b{layer}: f32[{units}] = "b{layer}"']
        lines += [f'weight s{layer}: f32[{units}] = "s{layer}"'] if (mixed := draw.random() < 0.4) else []
        lines.append(f"h{layer} = {one_of(ACTIVATIONS).format(f'{h} @ w{layer} + b{layer}')}")
        h = f"h{layer}"
        if mixed:
            lines.append(f"m{layer} = {one_of(MIXED).format(h=h, s=f's{layer}', b=f'b{layer}')}")
            h = f"m{layer}"
        if wide == units and layer and draw.random() < 0.5:
            lines.append(f"r{layer} = {h} + h{layer - 1}")
            h = f"r{layer}"
    labelled = sizes[-1] > 1 and draw.random() < 0.6
    goal = f"label: i32[{batch}] in [0, {sizes[-1] - 1}]" if labelled else f"goal: f32[{batch}, {sizes[-1]}]"
    loss = "cross_entropy(softmax(net(x)), label)" if labelled else "mean_squared_error(net(x), goal)"
    text = "\n    ".join(lines)
    return (
        f"weights random(seed={seed % 1000})\n"
        f"model net(x: f32[{batch}, {sizes[0]}]) -> f32[{batch}, {sizes[-1]}]:\n    {text}\n    return {h}\n"
        f"optimizer {one_of(OPTIMIZERS)}\n"
        f"train(x: f32[{batch}, {sizes[0]}], {goal}) -> f32[]:\n    return {loss}\n"
    ), microbatches
