"""Names that a source may have: of variables, weights and functions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tpucc.interop.decompile.program import Unwritable
from tpucc.language.frame import STATIC_FUNCTIONS
from tpucc.language.literals import IDENTIFIER, KEYWORDS
from tpucc.ops import OPS

TOP_LEVEL = ("param", "weights", "calibration", "activations", "examples", "optimizer", "model", "train", "weight", "fixed", "None")
RESERVED = frozenset((*KEYWORDS, *STATIC_FUNCTIONS, *TOP_LEVEL, *OPS))
"""Words that no variable is named, though the language would allow some."""
LONGEST = 16
"""Characters of a name that a graph may give to a variable."""


def required(name: str, what: str) -> str:
    """A name that has to be in the source as it is. Raises `Unwritable`."""
    if not IDENTIFIER.fullmatch(name) or name in KEYWORDS:
        raise Unwritable(f"{name!r} can't be the name of {what}")
    return name


def stem(name: str) -> str:
    """The name of a variable that the name of a node comes from, or empty: the front end makes `h.1` and `h.2` of a second and third `h`,
    and names a node without a variable after its operator."""
    base = re.sub(r"\.\d+$", "", name)
    meant = IDENTIFIER.fullmatch(base) and len(base) <= LONGEST and base not in RESERVED and base != "scalar"
    return base if meant and not _is_of_an_operator(base) else ""


def _is_of_an_operator(name: str) -> bool:
    """Whether a name is an operator's with a number, or any name with one behind `_`, as importers name nodes: `relu1`, `lstm_2` or
    `add_1_quant`."""
    plain = re.sub(r"_?\d*$", "", name).lower()
    counted = re.search(r"_\d*$|_\d+_", name) is not None
    return counted or (plain != name and (plain in OPS or any(op.replace("_", "").rstrip("0123456789d") == plain for op in OPS)))


def common_stem(hints: Sequence[str]) -> str:
    """The variable's name that all of these come from; empty if there is none."""
    first = stem(hints[0]) if hints else ""
    return first if first and all(hint == hints[0] or stem(hint) == first for hint in hints) else ""


def word_of(op: str) -> str:
    """An operator in a word: `conv` for conv2d."""
    return re.sub(r"\d+d$", "", op)


def unnamed(index: int, many: int) -> str:
    """The name of an output that isn't a variable."""
    return "out" if many == 1 else f"out{index}"
