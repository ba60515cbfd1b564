"""The words of messages: the grammar's terminals as a student calls them, and advice for words of other languages."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lark import Token

from tpucc.diagnostics import listed, printable

VALUES = frozenset(("NAME", "NUMBER", "STRING", "TRUE", "FALSE", "LPAR", "LSQB", "MINUS", "PLUS", "NOT"))
"""The tokens that may begin an expression."""

ARITHMETIC = ("PLUS", "MINUS", "STAR", "AT", "SLASH", "DOUBLE_SLASH", "PERCENT")
OPERATORS = frozenset((*ARITHMETIC, "COMPARE", "IN", "AND", "OR", "IF", "NOT", "DOT", "LPAR", "LSQB", "AUGMENTED"))
"""The tokens that may follow a complete value."""

STRING_PREFIXES = frozenset(("f", "r", "b", "u", "rb", "br", "fr", "rf"))
"""The prefixes of Python's strings, in small letters."""

TOP_LEVEL = ("param", "weights", "calibration", "activations", "examples", "optimizer", "def", "model", "train")
STATEMENTS = ("weight", "for", "if", "elif", "else", "return", "pass")


def advice(kind: str, word: str) -> str:
    """The help for a word, from the table `kind` of words.toml; empty for a word that the table doesn't have."""
    return _tables()[kind].get(word, "")


@cache
def _tables() -> Mapping[str, Mapping[str, str]]:
    """The tables of words.toml, with each word of a key by itself."""
    tables = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))
    return {kind: {word: text for words, text in table.items() for word in words.split()} for kind, table in tables.items()}


def expected(accepts: frozenset[str]) -> str:
    """`a name`, `an operator, `,` or `)``: what could stand here."""
    if accepts >= {"NUMBER", "STRING"}:
        rest = accepts - VALUES
        return listed(["a value", *_named(rest)], "or")
    words = ["an operator"] if len(accepts & OPERATORS) > 3 else []
    rest = accepts - OPERATORS if words else accepts
    words += _named(rest)
    return listed(words, "or") or "something else"


def found(token: Token) -> str:
    """The words for the token that was found."""
    text = printable(str(token))
    shown = text if len(text) <= 30 else text[:29] + "…"
    return (advice("found", token.type) or "`{}`").format(shown)


def _named(terminals: frozenset[str]) -> list[str]:
    """The words for the terminals that messages may name, in their order."""
    return [word for name, word in _tables()["expected"].items() if name in terminals]
