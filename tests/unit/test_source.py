"""From a graph of operators back to source text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cases import LONG, each, one_of
from tests.support.networks import network
from tests.support.operator_graphs import Model
from tpucc.diagnostics import Source
from tpucc.ir import Graph, NoAttributes, Node, f32
from tpucc.language.elaborate import elaborate
from tpucc.language.frame import is_operator
from tpucc.language.parse import parse
from tpucc.ops import OPS
from tpucc.ops.leaky_relu import LeakyReluAttributes
from tpucc.ops.opdef import Example
from tpucc.source import Unwritable, same_model, source_of
from tpucc.source.loops import rolled
from tpucc.source.text import lines_of, wrapped

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "source"
PROGRAMS = sorted([*(ROOT / "programs").glob("*.tpu"), *(ROOT / "tests" / "programs").glob("*.tpu")])
FEWER = {"10_imdb_lstm.tpu": {"time": 20}, "imdb_lstm.tpu": {"time": 20}}
"""Params with which a program's graph is small enough for a test."""

MOBILENET = """
param batch = 2
weights random(seed=0)
def layer(x, filters, key, size=1, stride=1, groups=1):
    weight kernel: f32[size, size, x.shape[3] // groups, filters] = "{key}.0.weight"
    weight gamma: f32[filters] = "{key}.1.weight"
    weight beta: f32[filters] = "{key}.1.bias"
    weight mean: f32[filters] = "{key}.1.running_mean"
    weight variance: f32[filters] = "{key}.1.running_var"
    h = conv2d(x, kernel, stride=stride, padding=size // 2, groups=groups)
    return batch_norm(h, gamma, beta, mean, variance, epsilon=0.00001)
def inverted(x, filters, stride, key):
    h = relu6(layer(x, 6 * x.shape[3], "{key}.conv.0"))
    h = relu6(layer(h, h.shape[3], "{key}.conv.1", size=3, stride=stride, groups=h.shape[3]))
    h = layer(h, filters, "{key}.conv.2")
    return x + h if stride == 1 and x.shape[3] == filters else h
model mobilenet(image: f32[batch, 32, 32, 3]) -> f32[batch, 10]:
    h = relu6(layer(image, 8, "features.0", size=3, stride=2))
    n = 1
    for row in [(8, 1, 1), (12, 3, 2), (16, 5, 2)]:
        for i in range(row[1]):
            h = inverted(h, row[0], row[2] if i == 0 else 1, "features.{n}")
            n = n + 1
    h = relu6(layer(h, 64, "features.{n}"))
    weight w: f32[64, 10] = "classifier.1.weight"
    weight b: f32[10] = "classifier.1.bias"
    return reshape(global_avg_pool(h), (batch, 64)) @ w + b
"""
SEQUENCE = """
weights random(seed=0)
param batch = 2
def cell(x, h, key):
    weight w: f32[x.shape[-1], 6] = "{key}.weight_ih"
    weight r: f32[6, 6] = "{key}.weight_hh"
    weight b: f32[6] = "{key}.bias"
    return tanh(x @ w + h @ r + b)
model both_ways(x: f32[batch, 12, 5]) -> f32[batch, 12]:
    forwards = []
    backwards = []
    h = zeros([batch, 6])
    xs = []
    for t in range(12):
        xs = xs + [x[:, t]]
    for t in range(12):
        h = cell(xs[t], h, "rnn.forward")
        forwards = forwards + [h]
    h = zeros([batch, 6])
    for t in range(12):
        h = cell(xs[11 - t], h, "rnn.reverse")
        backwards = [h] + backwards
    both = []
    for t in range(12):
        both = both + [reshape(concat([forwards[t], backwards[t]]), (batch, 1, 12))]
    return mean(concat(both, axis=1), axis=1)
"""
QUANTISED_RECURRENCE = """
weights random(seed=0)
def on(x, scale, zero_point):
    return dequantize(quantize(x, scale, zero_point=zero_point))
model words(x: f32[2, 5, 3]) -> f32[2, 4]:
    scales = [0.031, 0.027, 0.0305, 0.0262, 0.0291]
    points = [3, -7, 11, 0, 5]
    firsts = ["first.bias", "first.bias0", "first.bias1", "first.bias2", "first.bias3"]
    states = ["state.bias", "state.bias0", "state.bias1", "state.bias2", "state.bias3"]
    weight w: f32[3, 8] = "first"
    weight u: f32[4, 8] = "state"
    ins = []
    for t in range(5):
        weight b: f32[8] = firsts[t]
        ins = ins + [on(x[:, t], scales[t], points[t]) @ w + b]
    h = on(zeros([2, 4]), 0.0071, 0)
    for t in range(5):
        weight b: f32[8] = states[t]
        z = on(h @ u + b, scales[t] / 3, points[t] + 1)
        z = on(z + on(ins[t], scales[t] / 2, points[t] - 2), scales[t] / 5, points[4 - t])
        gate = on(sigmoid(z[:, :4]), 0.0039, -128)
        h = on(gate * on(tanh(z[:, 4:]), scales[4 - t] / 4, 1 - points[t]), scales[t] / 7, points[t])
    return h
"""
BOTH_WAYS = """
weights random(seed=0)
def on(x, scale, zero_point):
    return dequantize(quantize(x, scale, zero_point=zero_point))
def direction(x, key, times, more):
    weight w: f32[3, 4] = "{key}.w"
    weight u: f32[4, 4] = "{key}.u"
    scales = [0.031, 0.027, 0.0305, 0.0262, 0.0291]
    points = [3, -7, 11, 0, 5]
    z = on(x @ w, 0.04, more)
    h = on(sigmoid(z[:, times[0]]), 0.004, -128)
    for t in range(5):
        s = scales[t] + more / 100
        h = on(tanh(on(on(h @ u, s, points[t] + more) + z[:, times[t + 1]], s / 2, more - points[t])), s / 5, 3 - points[t])
    return h
model words(x: f32[2, 6, 3]) -> f32[2, 4]:
    return direction(x, "forward", [0, 1, 2, 3, 4, 5], 4) * direction(x, "backward", [5, 4, 3, 2, 1, 0], 1)
"""
QUANTISED = """
weights random(seed=0)
param batch = 2
def held(x, scale, zero=0):
    return dequantize(quantize(x, scale, zero_point=zero))
def layer(x, filters, key, scale, zero):
    weight kernel: f32[3, 3, x.shape[3], filters] = "{key}.kernel"
    weight bias: f32[filters] = "{key}.bias"
    return held(conv2d(x, held(kernel, scale / 7), padding=1) + bias, scale, zero)
model quantised(image: f32[batch, 8, 8, 3]) -> f32[batch, 5]:
    h = layer(held(image, 0.02, 11), 4, "stem", 0.05, -128)
    for i in range(3):
        h = held(h + layer(h, 4, "block{i}", 0.03 + i / 64, -128), 0.07 + i / 64, -128)
    weight w: f32[4, 5] = "fc.w"
    return held(global_avg_pool(h) @ held(w, 0.0625), 0.25, 3)
"""


STEP = """
def step(x, key):
    weight w: f32[8, 8] = "{key}.w"
    weight b: f32[8] = "{key}.b"
    return tanh(x @ w + b) * sigmoid(x) + x

model m(x: f32[2, 8]) -> f32[2, 8]:
"""


def graph_of(text: str, params: Mapping[str, int] | None = None) -> Graph:
    """The operator graph of a source."""
    source = Source("model.tpu", text)
    return elaborate(parse(source), source, {name: str(value) for name, value in (params or {}).items()}).graph


def program(path: Path) -> Graph:
    return graph_of(path.read_text(), FEWER.get(path.name))


def anonymous(graph: Graph) -> Graph:
    """The graph with names of nodes that say nothing, as importers may give."""
    names = {node.name: node.name if node.is_input else f"{node.op}_{index}" for index, node in enumerate(graph)}
    nodes = [replace(node, name=names[node.name], operands=tuple(names[operand] for operand in node.operands)) for node in graph]
    return replace(graph, nodes=tuple(nodes), outputs=tuple(replace(output, node=names[output.node]) for output in graph.outputs))


def require_source(graph: Graph) -> str:
    """The text, which must mean the same graph with its functions and loops."""
    text = source_of(graph)
    assert text == "\n".join([*lines_of(graph, structured=True), ""])
    assert same_model(graph_of(text), graph)
    assert max(map(len, text.splitlines())) <= 100
    return text


@pytest.mark.parametrize("path", one_of(6, one_of(6, PROGRAMS), LONG), ids=lambda path: path.stem)
def test_a_programs_graph_has_a_source(path: Path) -> None:
    graph = program(path)
    assert len(require_source(graph).splitlines()) <= max(45, len(graph) // 2)
    require_source(anonymous(graph))


@pytest.mark.parametrize("name", ["09_cifar_resnet", "06_digits_lstm"])
def test_a_text_without_functions_means_the_same(name: str) -> None:
    graph = program(ROOT / "programs" / f"{name}.tpu")
    assert same_model(graph_of("\n".join(lines_of(graph, structured=False))), graph)


MOST = 1000
"""Elements of a constant that a test writes out."""
CASES = [(name, example) for name in OPS if is_operator(name) or name == "slice" for example in OPS[name].examples]


@pytest.mark.long
@each(CASES)
def test_every_example_of_an_operator(op: str, example: Example[Any]) -> None:
    model = Model()
    operands = [model.input(f"x{index}", *type_.shape, dtype=type_.dtype) for index, type_ in enumerate(example.operands)]
    type_ = OPS[op].infer(example.attributes, example.operands)
    y = model.builder.add(
        Node("y", op, tuple(operands), example.attributes, type_, model.builder.nodes["x0"].origin if operands else ORIGIN)
    )
    graph = model.build(y.name)
    if op == "constant" and type_.size > MOST:
        return
    if any(type_.dtype not in ("f32", "i32") for type_ in example.operands):
        with pytest.raises(Unwritable, match="no inputs of the type"):
            source_of(graph)
    else:
        require_source(graph)


ORIGIN = program(ROOT / "programs" / "01_hello.tpu").nodes[0].origin


@pytest.mark.parametrize("seed", one_of(3, range(30)))
def test_random_networks(seed: int) -> None:
    graph = graph_of(network(seed))
    require_source(graph)
    require_source(anonymous(graph))


GOLDENS = {
    "digits_cnn": lambda: program(ROOT / "programs" / "05_digits_cnn.tpu"),
    "resnet": lambda: program(ROOT / "tests" / "programs" / "resnet.tpu"),
    "imdb_lstm": lambda: program(ROOT / "programs" / "10_imdb_lstm.tpu"),
    "attention": lambda: anonymous(program(ROOT / "tests" / "programs" / "attention.tpu")),
    "mobilenet": lambda: anonymous(graph_of(MOBILENET)),
    "both_ways": lambda: anonymous(graph_of(SEQUENCE)),
    "quantised": lambda: anonymous(graph_of(QUANTISED)),
    "quantised_recurrence": lambda: anonymous(graph_of(QUANTISED_RECURRENCE)),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_the_text_is_what_a_person_would_write(name: str, update_golden: bool) -> None:
    path, text = GOLDEN / f"{name}.tpu", require_source(GOLDENS[name]())
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()


def test_sizes_follow_the_params() -> None:
    text = (ROOT / "tests" / "programs" / "attention.tpu").read_text()
    found = source_of(graph_of(text, {"batch": 7}), params={"batch": 7}, values={"batch": 2}, weights="vit.npz", comments=("Two blocks.",))
    assert found.startswith('# Two blocks.\nparam batch = 2\nweights "vit.npz"\n\ndef ')
    assert same_model(graph_of(found, {"batch": 5}), graph_of(text, {"batch": 5}))
    assert "(batch, 9, 24)" in found


def test_what_the_language_cannot_say_is_refused() -> None:
    model = Model()
    x = model.input("x", 4)
    graph = model.build(model.op("relu", x))
    for wrong in (replace(graph, name="a model"), replace(graph, outputs=(replace(graph.outputs[0], name="in"),))):
        with pytest.raises(Unwritable, match="can't be the name"):
            source_of(wrong)
    infinite = Model()
    steep = infinite.op("leaky_relu", infinite.input("x", 4))
    node = replace(infinite.builder.nodes[steep], attributes=LeakyReluAttributes(float("inf")))
    with pytest.raises(Unwritable, match="no text for the value inf"):
        source_of(infinite.build(steep).with_nodes([infinite.builder.nodes["x"], node]))
    internal = Model()
    built = internal.op("broadcast", internal.input("x", 4), shape=(2, 4))
    with pytest.raises(Unwritable, match="the operator broadcast"):
        source_of(internal.build(built))
    far = Model()
    last = far.op("slice", far.input("x", 4), starts=(3,), stops=(-1,), steps=(-(2**63),))
    with pytest.raises(Unwritable, match="the front end refuses the text of the graph: this number is too large"):
        source_of(far.build(last))


def test_outputs_keep_their_names() -> None:
    text = """model m(x: f32[4], y: f32[4]):
    h = relu(x)
    out1 = tanh(h)
    a, b = y, x
    x, y = a, b
    return x, y, h, out1, h + x
"""
    graph = graph_of(text)
    assert [output.name for output in graph.outputs] == ["x", "y", "h", "out1", "out4"]
    require_source(graph)


@each(
    [
        ("relu(x)", "tanh(x)"),
        ("leaky_relu(x, alpha=0.2)", "leaky_relu(x, alpha=0.3)"),
        ("x - y", "y - x"),
        ("x[0:2]", "x[1:3]"),
        ("x * 2.0", "x * 3.0"),
        ("relu(x) + relu(x)", "relu(relu(x))"),
    ]
)
def test_other_models_are_not_the_same(one: str, other: str) -> None:
    head = "model m(x: f32[4], y: f32[4]):\n    return "
    assert not same_model(graph_of(head + one), graph_of(head + other))


def test_names_and_order_of_nodes_make_no_difference() -> None:
    a = graph_of("model m(x: f32[4]):\n    a = relu(x)\n    b = tanh(x)\n    h = a + b\n    return h\n")
    b = graph_of("model m(x: f32[4]):\n    t = tanh(x)\n    h = relu(x) + t\n    return h\n")
    assert same_model(a, b)
    once = graph_of("model m(x: f32[4]):\n    a = relu(x)\n    return a + a\n")
    twice = graph_of("model m(x: f32[4]):\n    return relu(x) + relu(x)\n")
    assert not same_model(once, twice)
    assert not same_model(a, replace(a, name="n"))


def test_numbers_are_the_same_float32() -> None:
    values = [0.1, 1 / 3, -1.0, 1 / 49, 1e-38, 3.4e38, -0.0, float(np.float32(1e10))]
    model = Model()
    h = model.input("x", 4)
    for index, value in enumerate(values):
        h = model.op(("mul", "add", "div")[index % 3], h, model.constant("c", value), name=f"h{index}")
    require_source(model.build(h))


def test_lines_become_loops_where_only_integers_rise() -> None:
    lines = [f'h = f(h, {2 * index + 1}, "layer{index}.w", 0.{index % 2})' for index in range(3)]
    assert list(rolled(lines)) == lines
    lines = [f'h = f(h, {2 * index + 1}, "layer{index}.{{name2}}")' for index in range(3)]
    assert list(rolled(lines)) == ["for i in range(3):", '    h = f(h, 2 * i + 1, "layer{i}.{name2}")']
    assert list(rolled([f"x[:, {index}]" for index in (5, 4, 3)])) == ["for t in range(3):", "    x[:, 5 - t]"]
    assert list(rolled(["h = f(h, 1e-01)", "h = f(h, 1e-02)", "h = f(h, 1e-03)"])) == [
        "h = f(h, 1e-01)",
        "h = f(h, 1e-02)",
        "h = f(h, 1e-03)",
    ]


@each(
    [
        ("x[:, {t} * 4:{t} * 4 + 4]", range(6), "for t in range(6):\n        h = step(x[:, 4 * t:4 * t + 4], h)\n"),
        ("x[:, {t} * 4:{t} * 4 + 4]", range(5, -1, -1), "for t in range(6):\n        h = step(x[:, 20 - 4 * t:24 - 4 * t], h)\n"),
        ("x[:, {t} * 4 + 3:({t} * 4 - 1) % 24:-1]", range(1, 6), "for t in range(5):\n        h = step(x[:, 4 * t + 7:4 * t + 3:-1], h)\n"),
        ("y[:, {t}:{t} + 1, 2:]", range(6), "for t in range(6):\n        h = step(y[:, t:t + 1, 2:6], h)\n"),
    ]
)
def test_the_first_and_the_last_slice_are_of_the_same_series(part: str, places: range, loop: str) -> None:
    head = "model m(x: f32[2, 24], y: f32[2, 6, 6], h: f32[2, 4]) -> f32[2, 4]:\n    weight u: f32[4, 4]\n    weight w: f32[4, 4]"
    flat = "reshape({}, (2, 4))" if part[0] == "y" else "{}"
    steps = "\n".join(f"    h = tanh({flat.format(part.format(t=t))} @ w + h @ u)" for t in places)
    source = require_source(anonymous(graph_of(f"{head}\n{steps}\n    return h - x[:, 20:]\n")))
    assert loop in source


def test_what_all_layers_read_of_an_input_is_given_to_each() -> None:
    """An exporter writes a mask where the first layer reads it, and there it stays: the other layers are the loop."""
    text = """
weights random(seed=0)
model m(x: f32[2, 4, 8], mask: f32[2, 4]) -> f32[2, 4, 8]:
    h = tanh(x)
    masks = []
    for i in range(4):
        weight w: f32[8, 8] = "layer.{i}.w"
        weight v: f32[8, 8] = "layer.{i}.v"
        h2 = tanh(h @ w)
        masks = [reshape(1.0 - mask, (2, 4, 1))] if i == 0 else masks
        h = relu(h2 * masks[0] @ v) + h
    return h
"""
    found = require_source(graph_of(text))
    assert "for i in range(3):" in found
    assert found.index("1.0 - mask") < found.index("for i")


def test_the_last_step_of_a_loop_is_a_round_where_an_output_has_its_result() -> None:
    steps = "".join(f'    {"y" if t == 3 else "h"} = layer({"h" if t else "x"}, "in{t}")\n' for t in range(4))
    layer = 'def layer(x, key):\n    weight w: f32[8, 8] = "{key}.w"\n    weight b: f32[8] = "{key}.b"\n    return tanh(x @ w + b) * x\n'
    source = require_source(graph_of(f"{layer}model m(x: f32[2, 8]) -> f32[2, 8]:\n{steps}    return y\n"))
    assert 'for i in range(3):\n        h = dense_tanh_mul(h, "in{i + 1}")\n    y = h\n' in source


def test_the_last_round_of_a_loop_has_the_names_of_the_others() -> None:
    """Though another name is free, as what had it is read no more."""
    steps = "".join(f"    a = tanh(z[:, {t}])\n    g = a * g - sigmoid(g) * a\n" for t in range(5))
    text = f"model m(x: f32[2, 5, 3]) -> f32[2, 3]:\n    z = exp(relu(x))\n    g = tanh(x[:, 0])\n{steps}    return g + 1\n"
    assert "    for t in range(" in require_source(anonymous(graph_of(text)))


def test_values_of_two_joins_are_two_lists() -> None:
    steps = "".join(f"    {x}{t} = exp(abs(x[:, {t}] - {x}))\n" for x in "yz" for t in range(5))
    ends = (f"concat([{', '.join(f'{x}{t}' for t in range(5))}])" for x in "yz")
    text = f"model m(x: f32[2, 5, 3], y: f32[2, 3], z: f32[2, 3]) -> f32[2, 15], f32[2, 15]:\n{steps}    return {', '.join(ends)}\n"
    source = require_source(anonymous(graph_of(text)))
    assert "concat(hs), concat(hs2)" in source


def test_numbers_that_differ_between_calls_are_parameters() -> None:
    steps = "".join(
        f"    a = x[:, {t}]\n    g = tanh(g @ u) * softmax(gelu(a) * a + sqrt(a + 1) * (a + {t}.1)) + sigmoid(g @ w)\n" for t in range(5)
    )
    head = "model m(x: f32[2, 5, 3]) -> f32[2, 3]:\n    weight u: f32[3, 3]\n    weight w: f32[3, 3]\n    g = exp(x[:, 0])\n"
    source = require_source(anonymous(graph_of(f"{head}{steps}    return g + 1\n")))
    assert "\n".join(f"    h = step(h, x[:, {t}], {t}.1)" for t in range(5)) in source, "float32, with the digits that it has"


def test_windows_may_be_pairs_and_numbers() -> None:
    """As in the embedding of openWakeWord."""
    text = """
def layer(x, filters, key):
    weight w: f32[1, 1, x.shape[-1], filters] = "{key}.w"
    return relu(conv2d(x, w))
def block(x, size, filters, key):
    h = max_pool(x, size=size)
    for i in range(4):
        h = layer(h, filters, "{key}{i}")
    return h

model m(x: f32[2, 32, 32, 1]) -> f32[2, 8, 4, 9]:
    h = block(x, (1, 2), 4, "a")
    h = block(h, 2, 6, "b")
    return block(h, 2, 9, "c")
"""
    assert "size=(1, 2))" in require_source(graph_of(text))


def test_filters_are_no_height() -> None:
    """Though they are as many in both calls."""
    steps = [
        f'    weight {k}: f32[3, 3, {c}, {n}] = "{k}.weight"\n    weight {b}: f32[{n}] = "{k}.bias"\n'
        f"    x = relu(conv2d(x, {k}, stride=2, padding=1) + {b})\n"
        for k, b, c, n in (("k", "b", 1, 8), ("l", "d", 8, 4))
    ]
    text = "".join(["model m(image: f32[2, 8, 8, 1]) -> f32[2, 2, 2, 4]:\n    x = image\n", *steps, "    return x\n"])
    assert "f32[3, 3, x.shape[-1], filters]" in require_source(anonymous(graph_of(text)))


def test_long_lines_break_behind_commas_in_few_brackets() -> None:
    line = f"h = f(x, [{', '.join(map(str, range(20)))}], [{', '.join(map(str, range(20)))}])"
    broken = list(wrapped(line, 4))
    assert [len(part) <= 100 for part in broken] == [True] * len(broken)
    assert broken[1].startswith("        [0, 1")
    assert list(wrapped('h = "' + ", " * 60 + '"', 0)) == ['h = "' + ", " * 60 + '"']


def test_an_identity_slice_is_its_operand() -> None:
    model = Model()
    x = model.input("x", 4, 5)
    whole = model.op("slice", x, starts=(0, 0), stops=(4, 5))
    graph = model.build(model.op("relu", whole))
    assert "relu(x)" in require_source(graph)


def test_words_of_the_language_are_no_names_of_variables() -> None:
    model = Model()
    x = model.input("x", 4)
    named = [model.builder.add(Node(name, "relu", (x,), NoAttributes(), f32(4), ORIGIN)).name for name in ("for", "relu", "weight", "len")]
    sums = [model.op("add", *named[:2]), model.op("add", *named[2:])]
    text = require_source(model.build(model.op("add", *sums, name="y")))
    assert not {"for", "weight", "len"} & set(text.replace("(", " ").replace(",", " ").split())


def test_a_text_that_means_another_graph_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = program(ROOT / "programs" / "09_cifar_resnet.tpu")
    monkeypatch.setattr("tpucc.source.lines.rolled", lambda lines: [line.replace(" + ", " - ") for line in lines])
    assert source_of(graph) == "\n".join([*lines_of(graph, structured=False), ""])


def test_no_variable_has_the_name_of_a_function() -> None:
    lines = [f'    lstm = step(lstm, "lstm.{index}")' for index in range(1, 5)]
    text = require_source(graph_of("\n".join([STEP, '    lstm = step(x, "lstm.0")', *lines, "    y = relu(lstm)", "    return y", ""])))
    assert "def lstm(" in text
    assert "lstm = " not in text


ROTATED = """
model m(x: f32[2, 5, 3]) -> f32[2, 4]:
    weight w: f32[3, 4]
    weight u: f32[4, 4]
    a = x[:, 0]
    b = zeros([2, 4])
    h = tanh(a @ w + b @ u)
    a = x[:, 1]
    h = tanh(h @ u + a @ w)
    a = x[:, 2]
    h = tanh(h @ u + a @ w)
    a = x[:, 3]
    h = tanh(h @ u + a @ w)
    return tanh(h @ u + x[:, 4] @ w)
"""


def test_steps_are_alike_whatever_stands_before_them() -> None:
    """A first state comes before all steps."""
    source = require_source(anonymous(graph_of(ROTATED.replace("a @ w + b @ u", "b @ u + a @ w"))))
    assert "    for t in range(5):\n        h = step(h, x[:, t])\n" in source


def test_a_first_call_computes_the_variables_that_the_others_take() -> None:
    """So that it is a round of the loop."""
    head = "model m(x: f32[2, 5, 4]) -> f32[2, 4]:\n    weight w: f32[4, 8]\n    weight u: f32[4, 8]\n    weight v: f32[4, 4]"
    step = "    i = sigmoid(z[:, :4])\n    b = b * i + tanh(z[:, 4:])\n    a = tanh(b @ v) * i"
    steps = [f"    z = a @ u + x[:, {t}] @ w\n{step}" for t in range(5)]
    text = "\n".join([head, "    b = exp(x[:, 0])\n    a = tanh(b)", *steps, "    return a - b", ""])
    assert "    for t in range(5):\n        h2, h = step(h2, x[:, t], h)\n" in require_source(anonymous(graph_of(text)))


INCEPTION = """
def conv(x, filters, key):
    weight w: f32[1, 1, x.shape[-1], filters] = "{key}.weight"
    weight b: f32[filters] = "{key}.bias"
    return relu(conv2d(x, w) + b)
def module(x, filters, key):
    left = conv(x, filters, "{key}.left")
    right = conv(conv(x, filters // 2, "{key}.right.0"), filters, "{key}.right.1")
    return concat([left, right], axis=3)
model inception(image: f32[2, 4, 4, 3]) -> f32[2, 4, 4, 24]:
    h = conv(image, 4, "stem")
    h = module(h, 4, "first")
    h = max_pool(h, size=1)
    h = module(h, 8, "second")
    return module(h, 12, "third")
"""


def test_a_function_is_a_block_of_the_model_with_its_names() -> None:
    """No function begins or ends within a scope of names, and each block is one call with one name."""
    source = require_source(anonymous(graph_of(INCEPTION)))
    functions = source.split("\nmodel ")[0].split("\ndef ")
    assert [text.count("weight ") for text in functions] == [2, 0], "the layer has both weights, and the block has layers"
    for name in ("first", "second", "third"):
        assert source.count(f'"{name}') == 1
    assert '"{name}.right.0"' in source


def test_names_of_a_model_cannot_leave_their_strings() -> None:
    key = r'"w\" relu(x) {{name}} \\ # \n"'
    text = require_source(graph_of(f"model m(x: f32[4]):\n    weight w: f32[4] = {key}\n    return x + w\n"))
    assert f"f32[4] = {key}\n" in text
