"""The grammar's terminals in a student's words."""

from __future__ import annotations

from collections.abc import Mapping

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

PYTHON_ONLY: Mapping[str, str] = {
    "while": "loops run a known number of times: for i in range(n):",
    "import": "nothing is imported: every operator is always there",
    "from": "nothing is imported: every operator is always there",
    "class": "a def makes the layers of a model",
    "lambda": "write a def",
    "try": "there is nothing to catch",
    "with": "write its body alone",
    "raise": "there is nothing to catch an error",
    "assert": "a type after -> checks the results of a model",
    "del": "names may simply stay",
    "global": "a def reads params, and returns what it computes",
    "nonlocal": "a def reads params, and returns what it computes",
    "async": "operators that don't depend on each other are found by the compiler",
    "await": "operators that don't depend on each other are found by the compiler",
    "yield": "a def returns all its results at once: return a, b",
    "match": "write if, elif and else",
    "switch": "write if, elif and else",
    "break": "a loop runs through its whole range; choose a shorter range, as in range(2), or put the rest of the body under an if",
    "continue": "put the rest of the loop's body under an if",
    "is": "values are compared with ==",
    "print": "tpucc shows shapes in its reports; nothing is printed while compiling",
}
"""Words that a Python programmer may try, and what to do instead."""

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
ELSEWHERE: Mapping[str, str] = dict.fromkeys(("function", "func", "fn", "fun"), "def") | dict.fromkeys(
    ("network", "net", "module"), "model"
)
"""The words of other languages for what stands at the top level."""
STATEMENTS = ("weight", "for", "if", "elif", "else", "return", "pass")


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
