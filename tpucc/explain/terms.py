"""The definitions of words that explain themselves where they stand: `terms.toml` has them, and the rows of the accounting their own."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources

from tpucc.explain.accounting import ROWS
from tpucc.target import Target

_READ = tomllib.loads((resources.files(__package__) / "terms.toml").read_text("utf-8"))
GLOSSARY: Mapping[str, str] = _READ["glossary"]
AT_ONCE = "needed at once"
"""What pictures and cards call the lower bound."""
SPOKEN = ("parameter block", "block", "chunk", "group", "pitch", "walk")
"""Words of sentences about layers and instructions; one that is a part of another stands after it."""
TERMS: Mapping[str, str] = {
    **{row.name: row.meaning for row in ROWS.values()},
    **{word: meaning.format(glossary=GLOSSARY, at_once=AT_ONCE) for word, meaning in _READ["terms"].items()},
}
"""The words of tables, cards and legends."""
COLOURS = (
    "blue: values of layers whose products the matrix unit computes, though the activation unit writes them; "
    "green: values of layers of the activation unit alone; grey: values from the host, and copies of inputs"
)
"""What the colours of the buffers say."""


def lanes(target: Target) -> dict[str, str]:
    """What each lane of the timeline shows."""
    return {name: meaning.format(target=target) for name, meaning in _READ["lanes"].items()}
