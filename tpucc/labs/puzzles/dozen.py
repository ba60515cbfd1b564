"""The puzzles of a term: what puzzles.toml declares, with the term's words and numbers."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path
from typing import Any

from tpucc.labs.lab import AS_WRITTEN, Term, filled
from tpucc.labs.puzzles.draws import DRAWS
from tpucc.labs.puzzles.puzzle import Puzzle
from tpucc.labs.puzzles.rules import Rules, rules
from tpucc.labs.puzzles.task import Most

DECLARED = Path(__file__).with_name("puzzles.toml")


def puzzles(term: Term = AS_WRITTEN) -> tuple[Puzzle, ...]:
    """All puzzles of a term, in the order of their numbers, which begin with 1."""
    term_rules = rules(term)
    declared = tomllib.loads(filled(DECLARED.read_text("utf-8"), term_rules.words))["puzzle"]
    return tuple(_puzzle(number, term, term_rules, **said) for number, said in enumerate(declared, 1))


def _puzzle(number: int, term: Term, term_rules: Rules, setting: str, task: str, **said: Any) -> Puzzle:
    """A puzzle of what is declared of it; a `task` is one paragraph."""
    said |= {name: kind(said[name]) for name, kind in (("directives", tuple), ("most", _most)) if name in said}
    return Puzzle(number=number, task=" ".join(task.split()), draw=partial(DRAWS[setting], term_rules), term=term, **said)


def _most(said: dict[str, int]) -> Most:
    return Most(**said)
