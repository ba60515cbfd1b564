"""Advice for words of other languages: each row of words.toml is the help of the message that it is meant for."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

import tpucc.language.words
from tests.support.cases import each
from tpucc.diagnostics import CompileError, Source
from tpucc.ir import Constant
from tpucc.language.apply import KINDS, choices, declared
from tpucc.language.elaborate import elaborate
from tpucc.language.frame import is_operator
from tpucc.language.parse import parse
from tpucc.ops import OPS

TABLES = tomllib.loads(Path(tpucc.language.words.__file__).with_name("words.toml").read_text("utf-8"))
BODY = "model m(x: f32[2, 2]):\n    y = {}\n    return x\n"
SOURCES = {
    "directives": "{} = 3\n",
    "words": "model m(x: f32[2, 2]):\n    {} x\n    return x\n",
    "characters": BODY.format("x {} x"),
    "definitions": "{} f(x: f32[2, 2]):\n    return x\n",
    "functions": BODY.format("{}(x, x)"),
    "names": BODY,
    "attributes": BODY.format("x.{}"),
    "arguments": BODY.format("relu(x, {}=1)"),
    "renamed": BODY.format("KNOWS(x, {}=1)"),
    "types": "model m(x: {}[2, 2]):\n    return x\n",
}
KNOWS = {"axis": "softmax", "size": "max_pool", "stride": "conv2d", "epsilon": "layer_norm"}
"""Operators that have the arguments; those of optimizers stand in a line of their own."""
OPTIMIZER = "optimizer adam({}=1)\nmodel m(x: f32[2]):\n    return x\n"
TOLD = {"definitions": "did you mean {}?", "renamed": "the argument is called {} here", "types": "did you mean {}?"}
ROWS = [(kind, word, text) for kind in SOURCES for words, text in TABLES[kind].items() for word in words.split()]


@each(ROWS)
def test_each_advice_is_the_help_of_its_message(kind: str, word: str, text: str) -> None:
    outline = SOURCES[kind].replace("KNOWS", KNOWS.get(text, ""))
    if kind == "renamed" and text not in KNOWS:
        outline = OPTIMIZER.replace("adam", "rmsprop" if text == "decay" else "adam")
    source = Source("m.tpu", outline.format(word))
    with pytest.raises(CompileError) as caught:
        elaborate(parse(source), source)
    assert TOLD.get(kind, "{}").format(text) in [help for found in caught.value.diagnostics for help in found.help]


def test_there_is_a_case_for_each_table() -> None:
    assert TABLES.keys() - SOURCES.keys() == {"expected", "found"}


def test_every_static_argument_of_an_operator_has_a_kind_in_words() -> None:
    attributes: list[Any] = [operator.attributes for name, operator in OPS.items() if is_operator(name)]
    kinds = {choice for each in attributes for _, annotation, _ in declared(each) for choice in choices(annotation)}
    assert kinds - {Constant} == set(KINDS)
