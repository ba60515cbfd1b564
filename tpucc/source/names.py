"""Names that a source may have: of variables, weights and functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tpucc.language.frame import STATIC_FUNCTIONS
from tpucc.language.literals import IDENTIFIER, KEYWORDS
from tpucc.ops import OPS

TOP_LEVEL = ("param", "weights", "calibration", "activations", "examples", "optimizer", "model", "train", "fixed", "None", "scalar")
RESERVED = frozenset((*KEYWORDS, *STATIC_FUNCTIONS, *TOP_LEVEL, *OPS))
"""Words that no variable is named, though the language would allow some."""
DIGITS = "0123456789"
LONGEST = 16
"""Characters of a name that a graph may give to a variable."""


class Unwritable(ValueError):
    """The graph has no text: it has an operator, a value or a name that the language doesn't have."""


def required(name: str, what: str) -> str:
    """A name that has to be in the source as it is. Raises `Unwritable`."""
    if not IDENTIFIER.fullmatch(name) or name in KEYWORDS:
        raise Unwritable(f"{name!r} can't be the name of {what}")
    return name


def variable_in(name: str) -> str:
    """The name of a variable that the name of a node comes from, or empty. The front end names a second and third `h` `h.1` and `h.2`, and
    a node without a variable after its operator."""
    base = re.sub(r"\.\d+$", "", name)
    meant = IDENTIFIER.fullmatch(base) and len(base) <= LONGEST and base not in RESERVED
    return base if meant and not _is_of_an_operator(base) else ""


def _is_of_an_operator(name: str) -> bool:
    """Whether a name is an operator's with a number, or any name with a number behind `_`, as exporters name nodes: `relu1`, `lstm_2`."""
    plain = re.sub(r"_?\d*$", "", name).lower()
    counted = re.search(r"_\d*$|_\d+_", name) is not None
    return counted or (plain != name and (plain in OPS or any(op.replace("_", "").rstrip("0123456789d") == plain for op in OPS)))


def word_of(op: str) -> str:
    """An operator in a word: `conv` for conv2d."""
    return re.sub(r"\d+d$", "", op)


def unused(wanted: str, is_taken: Callable[[str], bool]) -> str:
    """The first unused name: `w`, `w2`, `w3`, …"""
    number, name = 1, wanted
    while is_taken(name):
        number += 1
        name = f"{wanted}{number}"
    return name


def common_word(names: Sequence[str]) -> str:
    """The word that the last parts of most names have in common, without numbers: `block` of `stage1.block2`; empty if there is none."""
    words = [parts[-1].lower() for name in names if (parts := [part for part in re.split(r"[^A-Za-z]+", name) if len(part) > 2])]
    best = max(words, key=words.count, default="")
    return best if 2 * words.count(best) > len(names) else ""
