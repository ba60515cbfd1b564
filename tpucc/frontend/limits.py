"""How much a source may ask of the compiler, before memory or patience runs out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one compilation. A source that crosses one gets a `LimitError` at the place where it does."""

    source_bytes: int = 8 * 2**20
    brackets: int = 100
    """Brackets, signs or `not`s inside each other, and `.name`, `(…)` or `[…]` after one value."""
    blocks: int = 50
    """Indented blocks inside each other."""
    operators: int = 10_000
    """Operators of one level in one expression: `a + b + c` has two."""
    digits: int = 100
    calls: int = 50
    """Calls of `def`s inside each other."""
    all_calls: int = 100_000
    """Calls of `def`s in all: each is inlined, and defs that call each other twice double them at every level."""
    steps: int = 5_000_000
    """Statements run and expressions evaluated in all. Where a whole list is read or made, each of its elements is a step too."""
    iterations: int = 1_000_000
    """Rounds of all loops together; an unrolled loop in a function counts at each call."""
    nodes: int = 100_000
    elements: int = 2**40
    """Elements of one tensor."""
    static_elements: int = 1_000_000
    """Elements of a static list with all its inner lists; characters of a static string."""
    integer: int = 2**63
    """Static integers lie strictly between this and its negative."""
    instructions: int = 4_000_000
    """Instructions of one program, host transfers not counted. Compiling two million takes minutes, and 3 GB with the pictures."""
    errors: int = 50
    """Errors reported in one run."""


DEFAULT = Limits()
