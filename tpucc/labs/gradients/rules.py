"""The operators of which a term asks for the gradients, and the slope that counts where there are two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpucc.labs.lab import Term

SMOOTH = ("tanh", "sigmoid", "softmax")
SHAPED = ("mul", "div", "matmul", "mean", "avg_pool")
KINKED: Mapping[str, tuple[str, str]] = {
    "leaky_relu": ("mean", "smaller"),
    "clip": ("mean", "larger"),
    "max_pool": ("mean", "larger"),
}
"""Operators with kinks, and the slopes that a term may choose there: none gives what tpucc's own rule does."""
FUNCTIONS = ("smooth", "shaped", "kinked")


@dataclass(frozen=True, slots=True)
class Rules:
    """A term's operators, one for each function that the student writes, and which of two slopes counts at a kink: the `larger`, the
    `smaller`, or their `mean`."""

    smooth: str = "tanh"
    shaped: str = "mul"
    kinked: str = "leaky_relu"
    slope: str = "mean"

    @property
    def asked(self) -> Mapping[str, str]:
        """The function of the submission for each operator."""
        return {self.smooth: "smooth", self.shaped: "shaped", self.kinked: "kinked"}


def rules(term: Term) -> Rules:
    """The rules of a term."""
    draw = term.draw("gradients")
    if draw is None:
        return Rules()
    kinked = draw.choice(tuple(KINKED))
    return Rules(draw.choice(SMOOTH), draw.choice(SHAPED), kinked, draw.choice(KINKED[kinked]))


FORMULAS: Mapping[str, str] = {
    "tanh": "y = tanh(x), element by element",
    "sigmoid": "y = 1 / (1 + exp(-x)), element by element",
    "softmax": "y = exp(x) / sum(exp(x)), the sum along the axis `g.attributes.axis`",
    "mul": "y = a * b",
    "div": "y = a / b",
    "matmul": "y = a @ b",
    "mean": "y is the mean of x along the axes `g.attributes.axis`",
    "avg_pool": "y has the average of each window of x",
    "leaky_relu": "y = x where x > 0, and alpha * x where x < 0",
    "clip": "y = x where low < x < high, low below, and high above",
    "max_pool": "y has the largest value of each window of x",
}
"""What each operator computes, in a line."""
_BROADCAST = (
    "The operands broadcast as NumPy's do: with a of shape [3, 5] and b of shape [5], each row of a meets the same b. Either side may "
    "be the one that is repeated, or both, as [4, 1] and [1, 6]. A size of 1 that stands beside a size of 1 isn't repeated."
)
_POOL = (
    "An image has the shape [batch, height, width, channels]. `g.attributes.size` is a pair, the height and the width of a window. Windows "
    "stand side by side, without padding, and cover the image: an image [2, 4, 9, 5] has 2 × 3 windows of size (2, 3), and y is of shape "
    "[2, 2, 3, 5]. Of an axis of 9 pixels, `reshape` makes two, [3, 3]: 3 windows of 3 pixels."
)
DETAILS: Mapping[str, str] = {
    "tanh": "Its slope is 1 - tanh(x)².",
    "sigmoid": "With e = exp(-x), its slope is e / (1 + e)². Write that with y alone.",
    "softmax": (
        "The axis is an integer; a negative one counts from the end. Each value of y depends on all values of x along the axis: the slope "
        "of yᵢ with respect to xⱼ is yᵢ · (1 - yᵢ) where i = j, and -yᵢ · yⱼ elsewhere. So dxⱼ is a sum over i."
    ),
    "mul": _BROADCAST,
    "div": f"{_BROADCAST} b is never 0 here.",
    "matmul": (
        "a has the shape [..., K], b has [K, N], and y has [..., N]: all sizes of a but the last are rows. a may be a vector [K], too. "
        "Write out one element, y[i, j] = sum over k of a[i, k] · b[k, j], and ask in which elements of y a given a[i, k] stands."
    ),
    "mean": (
        "`g.attributes.axis` is an integer, a tuple of integers, or None for all axes; negative ones count from the end. "
        "`g.attributes.keepdims` says whether these axes stay in y with size 1, or go."
    ),
    "avg_pool": _POOL,
    "leaky_relu": "`g.attributes.alpha` lies between -1 and 1. The kink is at x = 0, where the slopes are alpha and 1.",
    "clip": "The bounds are `g.attributes.low` and `g.attributes.high`. There are kinks at both, where the slopes are 0 and 1.",
    "max_pool": (
        f"{_POOL} A pixel that is smaller than the largest of its window has slope 0, one that is the largest alone has slope 1. Where "
        "several are equally large, each of these is at a kink: y doesn't change when it falls, and does when it rises. Its slopes are 0 "
        "and 1."
    ),
}
"""What a handout says of each operator."""
