"""The language's words in messages: the grammar's terminals as a student calls them, and advice for words of other languages."""

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

PUNCTUATION: Mapping[str, str] = {
    "COLON": "`:`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "RSQB": "`]`",
    "LPAR": "`(`",
    "LSQB": "`[`",
    "EQUAL": "`=`",
    "ARROW": "`->`",
    "NAME": "a name",
    "IN": "`in`",
    "ELSE": "`else`",
    "ELIF": "`elif`",
    "_NEWLINE": "the end of the line",
    "$END": "the end of the file",
}
"""The terminals that messages may name, in the order in which they do."""

FOUND: Mapping[str, str] = {
    "_NEWLINE": "the end of the line",
    "$END": "the end of the file",
    "_DEDENT": "the end of the block",
    "_INDENT": "an indented block",
    "NAME": "the name {}",
    "NUMBER": "the number {}",
    "STRING": "the string {}",
    "FIXED": "the name {}",
}
"""The terminals that don't stand for themselves."""

STRING_PREFIXES = frozenset(("f", "r", "b", "u", "rb", "br", "fr", "rf"))
"""The prefixes of Python's strings, in small letters."""

DIRECTIVES: Mapping[str, str] = {
    "weights": 'write weights "FILE.npz", or weights random(seed=0)',
    "calibration": 'write calibration "FILE.npz"',
    "activations": "write activations i8, or activations i16",
    "examples": 'write examples "FILE.npz"',
    "optimizer": "write optimizer adam(rate=0.001), or sgd, momentum or rmsprop",
}
"""The directives, and how each is written."""

TOP_LEVEL = ("param", "weights", "calibration", "activations", "examples", "optimizer", "def", "model", "train")
STATEMENTS = ("weight", "for", "if", "elif", "else", "return", "pass")


def advice(kind: str, word: str) -> str:
    """What to write in place of a word that other languages or frameworks have; empty where nothing is known of it."""
    return _advice()[kind].get(word, "")


@cache
def _advice() -> Mapping[str, Mapping[str, str]]:
    """The tables of advice.toml, with each word of a key by itself."""
    tables = tomllib.loads(Path(__file__).with_name("advice.toml").read_text("utf-8"))
    return {kind: {word: text for words, text in table.items() for word in words.split()} for kind, table in tables.items()}


def expected(accepts: frozenset[str]) -> str:
    """`a name`, `an operator, `,` or `)``: what could stand here."""
    if accepts >= {"NUMBER", "STRING"}:
        rest = accepts - VALUES
        return listed(["a value", *(word for name, word in PUNCTUATION.items() if name in rest)], "or")
    words = ["an operator"] if len(accepts & OPERATORS) > 3 else []
    rest = accepts - OPERATORS if words else accepts
    words += [word for name, word in PUNCTUATION.items() if name in rest]
    return listed(words, "or") or "something else"


def found(token: Token) -> str:
    """The words for the token that was found."""
    text = printable(str(token))
    shown = text if len(text) <= 30 else text[:29] + "…"
    return FOUND.get(token.type, "`{}`").format(shown)
