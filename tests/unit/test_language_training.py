"""`train` and what belongs to it: the graph of the loss, the directives, words that stay names, operators reached by their symbols."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import tpucc
from tests.support.cases import each
from tests.support.command_line import run
from tpucc.diagnostics import Source
from tpucc.driver import front_end
from tpucc.ir import TensorType, f32
from tpucc.language.directives import OPTIMIZERS, Optimizer, signature
from tpucc.language.elaborate import Model
from tpucc.language.problem import DEFAULT, Limits
from tpucc.language.training import Training
from tpucc.ops import OPS, also
from tpucc.ops.opdef import OpDef, RuleError
from tpucc.options import Options

MODEL = """
weights random(seed=0)
model m(x: f32[8, 16]) -> f32[8, 4]:
    weight w: f32[16, 4]
    return x @ w
"""
TRAIN = "train(x: f32[8, 16]) -> f32[]:\n    return m(x)[0, 0]\n"


@dataclass(frozen=True, slots=True)
class Axis:
    axis: int | None = None
    keepdims: bool = False


@dataclass(frozen=True, slots=True)
class Rate:
    rate: float


def whole(_: Any, types: Sequence[TensorType]) -> TensorType:
    return f32()


def dropped(attributes: Rate, types: Sequence[TensorType]) -> TensorType:
    if not 0 <= attributes.rate < 1:
        raise RuleError("E0307", "the rate must be at least 0 and below 1", about=("rate",))
    return types[0].plain()


BINARY = ("div", "greater", "greater_equal", "less", "less_equal", "equal", "not_equal")
STANDING_IN: list[OpDef[Any]] = [
    *(replace(OPS["mul"], name=name) for name in BINARY),
    *(replace(OPS["softmax"], name=name, attributes=Axis, infer=whole) for name in ("sum", "max", "min")),
    replace(OPS["softmax"], name="dropout", attributes=Rate, infer=dropped),
]
"""Operators of training, as far as the language sees them."""


@pytest.fixture(autouse=True)
def operators() -> Iterator[None]:
    """Puts in the operators that have no file."""
    with ExitStack() as stack:
        for operator in STANDING_IN:
            if operator.name not in OPS:
                stack.enter_context(also(operator))
        yield


def model(text: str, limits: Limits = DEFAULT) -> Model:
    return front_end(Source("t.tpu", text), Options(limits=limits))


def training(text: str, head: str = MODEL) -> Training:
    found = model(head + text).training
    assert found is not None
    return found


def errors(text: str) -> list[tuple[str, int, int]]:
    """The codes and the places of what is wrong."""
    with pytest.raises(tpucc.CompileError) as caught:
        model(text)
    return [(found.code, found.labels[0].span.line, found.labels[0].span.column) for found in caught.value.diagnostics]


def ops(text: str) -> list[str]:
    """The operators of the graph of a train whose body is the text."""
    body = "".join(f"    {line}\n" for line in text.splitlines())
    graph = training(f"train(x: f32[8, 16], y: f32[8, 4]):\n    z = m(x)\n{body}").graph
    return [node.op for node in graph if node.op not in ("input", "weight", "constant")]


def test_the_loss_is_the_output_of_a_graph_of_its_own() -> None:
    text = (
        'optimizer adam(rate=0.002)\nexamples "digits.npz"\n'
        'train(x: f32[8, 16], y: f32[8, 4]) -> f32[]:\n    weight v: f32[4, 4] = "head.v" fixed\n    z = m(x) @ v\n    return sum(z - y)\n'
    )
    found = training(text)
    assert [(node.name, node.op, node.type.brief) for node in found.graph] == [
        ("x", "input", "f32[8, 16]"),
        ("y", "input", "f32[8, 4]"),
        ("head.v", "weight", "f32[4, 4]"),
        ("w", "weight", "f32[16, 4]"),
        ("matmul", "matmul", "f32[8, 4]"),
        ("z", "matmul", "f32[8, 4]"),
        ("sub", "sub", "f32[8, 4]"),
        ("sum", "sum", "f32[]"),
    ]
    assert [(output.name, output.node) for output in found.graph.outputs] == [("loss", "sum")]
    assert (found.fixed, found.trained) == (frozenset({"head.v"}), frozenset({"w"}))
    assert found.optimizer == Optimizer("adam", (("rate", 0.002), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8)))
    assert found.examples == "digits.npz"
    assert found.examples_span is not None
    assert found.examples_span.line == 7
    (product,) = (node for node in found.graph if node.name == "matmul")
    assert ([span.line for span in product.origin.spans], [call.line for call in product.origin.calls]) == ([5], [10])


def test_the_model_s_graph_is_the_same_with_and_without_train(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    without, with_ = model(MODEL), model(MODEL + TRAIN)
    assert without.training is None
    assert str(without.graph) == str(with_.graph)
    assert [node.origin for node in without.graph] == [node.origin for node in with_.graph]
    programs = [tpucc.compile_source(text, target="tiny").program.value for text in (MODEL, MODEL + TRAIN)]
    assert replace(programs[1], source_text=MODEL) == programs[0]
    (tmp_path / "m.tpu").write_text(MODEL + "optimizer sgd(0.1)\n" + TRAIN)
    assert run("check", tmp_path / "m.tpu", "--json") == 0
    assert json.loads(capsys.readouterr().out) == []


@each([
        "def train(x):\n    return x\ndef examples(x, fixed=1):\n    return x * fixed\n"
        "param optimizer = 2\nmodel fixed(x: f32[2]):\n    return train(examples(x, fixed=optimizer))\n",
        "param train = 2\nparam fixed = train\nparam examples = 3\n"
        "model train(train: f32[train, fixed], optimizer: f32[2]):\n    examples = train * 2\n    fixed = examples\n"
        "    train, optimizer = fixed + optimizer, train\n    return train, optimizer\n",
        'model m(x: f32[3]):\n    weight fixed: f32[3]\n    weight train: f32[3] = "t"\n    return x * fixed + train\n',
        "model m(fixed: f32[3]):\n    for train in [1, 2]:\n        fixed = fixed * train if train > 1 else fixed\n    return fixed\n",
        'param fixed = "k"\nmodel m(x: f32[3]):\n    weight w: f32[3] = fixed\n    return x * w\n',
    ])  # fmt: skip
def test_the_words_of_training_stay_names(text: str) -> None:
    assert model(text).training is None


@each(["adam(0.5)", "adam(rate=1 / 2)", "adam(rate=half)", "adam(beta2=0.999, rate=0.5)"])
def test_an_optimizer_s_parameters_are_static_expressions(written: str) -> None:
    found = training(f"param half = 0.5\noptimizer {written}\n" + TRAIN).optimizer
    assert found == Optimizer("adam", (("rate", 0.5), ("beta1", 0.9), ("beta2", 0.999), ("epsilon", 1e-8)))


@each(
    [
        ("sgd", {}),
        ("momentum", {"decay": 0.9}),
        ("rmsprop", {"decay": 0.9, "momentum": 0.0, "epsilon": 1e-8}),
        ("adam", {"beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8}),
    ]
)
def test_optimizers_have_defaults_and_ranges(name: str, defaults: dict[str, float]) -> None:
    found = training(f"optimizer {name}(0.25)\n" + TRAIN).optimizer
    assert found == Optimizer(name, tuple({"rate": 0.25, **defaults}.items()))
    assert signature(name).startswith(f"{name}(rate")
    for limits in OPTIMIZERS[name]:
        least = 1e-30 if limits.name in ("rate", "epsilon") else 0
        assert limits.allows(least)
        assert not limits.allows(-1e-30 if least == 0 else 0)
        assert limits.allows(1.0) == (least > 0)


def test_train_may_say_nothing_of_its_result_its_optimizer_and_its_examples() -> None:
    found = training("train(x: f32[8, 16]):\n    return m(x)[0, 0]\n")
    assert (found.optimizer, found.examples, found.examples_span, found.fixed) == (None, None, None, frozenset())


@each(
    [
        "train(a: f32[8, 4], n: i32[8] in [0, 9]):\n    p, q = net(a, n)\n    return p[0, 0] + q[0, 0]\n",
        "train(a: f32[8, 4] in [0.0, 1.0], n: i32[8]):\n    p, q = net(ids=n, x=a)\n    return p[0, 0] + q[0, 0]\n",
        "train(a: f32[8, 4] in [0.25, 0.5], n: i32[8] in [1, 8]):\n    return both(a, n)\n",
        "train(n: i32[8]):\n    return both(zeros([8, 4]), n)\n",
    ]
)
def test_train_calls_the_model_as_a_def_is_called(train: str) -> None:
    head = (
        "def both(a, n):\n    r = net(a, n)\n    return r[0][0, 0] + r[1][0, 0]\n"
        "model net(x: f32[8, 4] in [0.0, 1.0], ids: i32[8] in [0, 9]):\n    weight table: f32[10, 4]\n"
        "    return relu(x), embedding(ids, table)\n"
    )
    assert [node.op for node in training(train, head).graph if node.op in ("relu", "embedding")] == ["relu", "embedding"]


def test_a_fault_that_both_have_is_told_once_and_others_are_all_told() -> None:
    head = "def f(x):\n    return x + 1 + y\nmodel m(x: f32[8, n]):\n    return f(x)\n"
    text = head + "train(x: f32[8, 16], z: f32[k]):\n    a = m(x)\n    b = f(x)\n    return a[0, 0] + c\n"
    assert [(code, line) for code, line, _ in errors(text)] == [("E0201", line) for line in (2, 3, 5, 8)]


def test_the_model_s_name_in_the_model_is_one_fault() -> None:
    for value, code in (("m", "E0201"), ("m(x)", "E0928")):
        assert errors(MODEL.replace("x @ w", value) + TRAIN) == [(code, 5, 12)]
    assert errors(MODEL + TRAIN.replace("m(x)[0, 0]", "m")) == [("E0222", 7, 12)]


def test_a_loop_of_too_many_rounds_is_refused_after_its_first() -> None:
    """What is wrong in a round is said first; a loop that may return early isn't too long before it is."""
    text = "model m(x: f32[1, 4]) -> f32[1, 4]:\n    for i in range(1000000000000):\n        x = relu({})\n{}    return x\n"
    with pytest.raises(tpucc.LimitError, match=r"E0604(.|\n)*help: each round makes operations"):
        model(text.format("x", ""), Limits(nodes=5))
    with pytest.raises(tpucc.CompileError, match="E0201"):
        model(text.format("what", ""), Limits(nodes=5))
    early = "        if i == 3:\n            return x\n"
    model(text.format("x", early), Limits(nodes=50))


def test_limits_hold_for_train_and_keep_the_errors_before() -> None:
    text = MODEL + "train(x: f32[8, 16]):\n    for i in range(100):\n        x = x * 2\n    return m(x)[0, 0]\n"
    with pytest.raises(tpucc.LimitError, match="E0605"):
        model(text, Limits(nodes=50))
    wrong = MODEL + "train(x: f32[8, 16]):\n    y = what\n    for i in range(100):\n        pass\n    return m(x)[0, 0]\n"
    with pytest.raises(tpucc.CompileError) as caught:
        model(wrong, Limits(iterations=0))
    assert [found.code for found in caught.value.diagnostics] == ["E0201", "E0604"]
    with pytest.raises(tpucc.CompileError) as caught:
        model(wrong.replace("return x @ w", "return x @ w @ what"), Limits(errors=2))
    assert [found.code for found in caught.value.diagnostics] == ["E0201", "E0201"]


def test_dropout_is_its_operand_outside_train() -> None:
    text = MODEL.replace("return x @ w", "h = dropout(x, rate=0.5)\n    return h @ w") + TRAIN
    found = model(text)
    assert [node.op for node in found.graph] == ["input", "weight", "matmul"]
    assert found.graph["matmul"].operands == ("x", "w")
    assert found.training is not None
    assert [node.op for node in found.training.graph] == ["input", "weight", "dropout", "matmul", "slice"]
    assert found.training.graph["h"].op == "dropout"


@each([("dropout(x)", "E0209"), ("dropout(x, 1.5)", "E0307"), ('dropout(x, "a")', "E0306"), ("dropout([x], 0.5)", "E0324")])
def test_dropout_s_arguments_are_checked_everywhere(call: str, code: str) -> None:
    (found,) = errors(f"model m(x: f32[2]):\n    return {call}\n")
    assert found[0] == code


@each(
    [
        ("return sum(z / y)", ["matmul", "div", "sum"]),
        ("return sum(1 / z)", ["matmul", "div", "sum"]),
        ("return sum(z / 4)", ["matmul", "mul", "sum"]),
        ("z /= y\nreturn sum(z)", ["matmul", "div", "sum"]),
        ("return max(z)", ["matmul", "max"]),
        ("return min(z, keepdims=False) * max(3, 4)", ["matmul", "min", "mul"]),
        ("return sum(z > y)", ["matmul", "greater", "sum"]),
        ("return sum(z >= 1)", ["matmul", "greater_equal", "sum"]),
        ("return sum(0 < z)", ["matmul", "less", "sum"]),
        ("return sum(z <= y)", ["matmul", "less_equal", "sum"]),
        ("return sum(z == y)", ["matmul", "equal", "sum"]),
        ("return sum(z != y)", ["matmul", "not_equal", "sum"]),
        ("return sum((z < 1) * (0 < z))", ["matmul", "less", "less", "mul", "sum"]),
    ]
)
def test_symbols_stand_for_operators_of_tensors(body: str, found: list[str]) -> None:
    assert ops(body) == found


def test_the_sides_of_a_comparison_stay_where_they_are() -> None:
    graph = model("model m(x: f32[3], y: f32[3]):\n    a = 0 < x\n    b = y >= x\n    return a, b\n").graph
    assert [graph[graph["a"].operands[0]].op, graph["a"].operands[1], *graph["b"].operands] == ["constant", "x", "y", "x"]


@each(
    [
        ("return sum(0 < z < 1)", "E0217", "(a < b) * (b < c)"),
        ("return sum(z > 0 and z < 1)", "E0215", "maximum(a, b)"),
        ("return sum(z > 0 or z < 1)", "E0215", "a * b is 1 where both are"),
        ("return sum(not z)", "E0215", "1 - mask"),
        ("if z > 0:\n        z = y\n    return sum(z)", "E0215", "where(mask, a, b)"),
        ("return sum(z if z > 0 else y)", "E0215", "where(mask, a, b)"),
        ('return sum(z == "a")', "E0324", ""),
        ("return sum(z // y)", "E0217", "+ - * / and @"),
        ("return sum(z / [1])", "E0217", ""),
        ("return sum(z in [z])", "E0215", ""),
        ("return sum(max(1, z))", "E0215", "maximum(a, b)"),
    ]
)
def test_what_tensors_can_t_do_says_what_can(body: str, code: str, help: str) -> None:
    with pytest.raises(tpucc.CompileError) as caught:
        model(MODEL + f"train(x: f32[8, 16], y: f32[8, 4]):\n    z = m(x)\n    {body}\n")
    (found,) = caught.value.diagnostics
    assert found.code == code
    assert help in " ".join(found.help)


HEADS = """
weights random(seed=0)
model m(x: f32[8, 16]):
    weight a: f32[16, 4]
    weight s: f32[16, 4] fixed
    weight b: f32[16, 4]
    return x @ a + x @ s, relu(x @ b)

train(x: f32[8, 16]):
    y, z = m(x)
    return y[0, 0]
"""


@each(
    [
        (MODEL + TRAIN, []),
        (MODEL + "optimizer sgd(0.1)\n" + 'examples "e.npz"\n', [("W0207", 6), ("W0207", 7)]),
        (MODEL.replace("f32[16, 4]\n", 'f32[16, 4] = "w" fixed\n'), [("W0207", 4)]),
        (MODEL + "train(x: f32[8, 4]):\n    weight v: f32[4, 1]\n    return (x @ v)[0, 0]\n", [("W0206", 6)]),
        (MODEL + "def f(x):\n    return m(x)\ndef g(x):\n    return f(x)\ntrain(x: f32[8, 16]):\n    return g(x)[0, 0]\n", []),
        (MODEL + "train(x: f32[8, 16], y: f32[3]):\n    a = tanh(x)\n    return m(x)[0, 0]\n", [("W0201", 6), ("W0203", 7)]),
        (HEADS, [("W0205", 6)]),
        (HEADS.replace("b: f32[16, 4]", "b: f32[16, 4] fixed"), []),
    ]
)
def test_warnings(text: str, warned: list[tuple[str, int]]) -> None:
    assert [(found.code, found.labels[0].span.line) for found in model(text).warnings] == warned
