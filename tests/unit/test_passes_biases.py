"""Constants that are added move to the product of the sum."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_close, body, check, graph_of, ran
from tpucc.ir import Graph
from tpucc.passes.biases import reassociate_bias
from tpucc.passes.fuse_bias import fuse_bias

SUM = """
    x = input : f32[3, 2]
    a = input : f32[3, 4]
    w = constant(value=f32[2, 4]{1, 2, 3, 4, 5, 6, 7, 8}) : f32[2, 4]
    b = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]
    c = constant(value=f32[]{0.5}) : f32[]
    p = matmul(x, w) : f32[3, 4]
"""


@each(
    [
        ("i = add(a, p) : f32[3, 4]\ny = add(i, b) : f32[3, 4]", "p.1 = add(p, b) : f32[3, 4]\ny = add(a, p.1) : f32[3, 4]"),
        ("i = add(p, a) : f32[3, 4]\ny = add(b, i) : f32[3, 4]", "p.1 = add(p, b) : f32[3, 4]\ny = add(p.1, a) : f32[3, 4]"),
        ("i = add(a, p) : f32[3, 4]\ny = sub(i, c) : f32[3, 4]", "p.1 = sub(p, c) : f32[3, 4]\ny = add(a, p.1) : f32[3, 4]"),
        ("i = sub(p, a) : f32[3, 4]\ny = add(i, b) : f32[3, 4]", "p.1 = add(p, b) : f32[3, 4]\ny = sub(p.1, a) : f32[3, 4]"),
        ("i = add(a, b) : f32[3, 4]\ny = add(i, p) : f32[3, 4]", "p.1 = add(p, b) : f32[3, 4]\ny = add(a, p.1) : f32[3, 4]"),
        ("i = sub(a, b) : f32[3, 4]\ny = add(p, i) : f32[3, 4]", "p.1 = sub(p, b) : f32[3, 4]\ny = add(a, p.1) : f32[3, 4]"),
    ]
)
def test_a_constant_moves_to_the_product(before: str, after: str) -> None:
    assert after in ran(reassociate_bias, f"{SUM}{before}\nreturn y")


def test_constants_on_every_side_end_in_one_bias() -> None:
    """As two linear layers with a bias each make them, one of which is no product any more."""
    text = f"""{SUM}i = add(a, b) : f32[3, 4]
        j = sub(i, c) : f32[3, 4]
        q = add(p, b) : f32[3, 4]
        k = add(j, q) : f32[3, 4]
        y = add(k, c) : f32[3, 4]
        return y"""
    ran(reassociate_bias, text)
    fused = fuse_bias.run(reassociate_bias.run(graph_of(text), CONTEXT), CONTEXT)
    assert [node.op for node in fused if node.op not in ("constant", "input")] == ["linear", "add"]
    assert_close(graph_of(text), fused)
    bias = fused[fused["y"].operands[1]].operands[2]
    assert f"{bias} = constant(value=f32[4]{{2.0, 4.0, 6.0, 8.0}})" in body(fused)


def test_of_two_products_the_right_one_takes_the_constant() -> None:
    text = f"{SUM}q = matmul(x, w) : f32[3, 4]\ni = add(p, q) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y"
    assert "q.1 = add(q, b) : f32[3, 4]\ny = add(p, q.1) : f32[3, 4]" in ran(reassociate_bias, text)


@each(
    [
        "i = add(a, p) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y, i",
        "i = add(a, p) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y, p",
        "i = add(a, p) : f32[3, 4] scale 0.5 zero 0\ny = add(i, b) : f32[3, 4]\nreturn y",
        "i = sub(a, p) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y",
        "i = add(a, p) : f32[3, 4]\ny = sub(b, i) : f32[3, 4]\nreturn y",
        "t = relu(p) : f32[3, 4]\ni = add(a, t) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y",
        "d = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]\ni = add(a, p) : f32[3, 4]\ny = add(i, d) : f32[3, 4]\nreturn y",
        "e = input : f32[2, 3, 4]\ni = add(e, p) : f32[2, 3, 4]\ny = add(i, b) : f32[2, 3, 4]\nreturn y",
        "q = matmul(x, w) : f32[3, 4]\ni = add(q, b) : f32[3, 4]\ny = add(i, p) : f32[3, 4]\nreturn y",
        "i = add(a, b) : f32[3, 4]\ny = sub(i, p) : f32[3, 4]\nreturn y",
    ]
)
def test_sums_that_stay(rest: str) -> None:
    graph = graph_of(SUM + rest)
    assert reassociate_bias.run(graph, CONTEXT) == graph


def test_convolutions_take_constants_too() -> None:
    text = """
        x = input : f32[1, 3, 4, 2]
        a = input : f32[1, 3, 4, 3]
        k = constant(value=f32[3, 2, 2, 3] random(0, "k")) : f32[3, 2, 2, 3]
        b = constant(value=f32[1, 1, 3]{1, 2, 3}) : f32[1, 1, 3]
        p = conv2d(x, k, padding="same") : f32[1, 3, 4, 3]
        i = add(a, p) : f32[1, 3, 4, 3]
        y = add(i, b) : f32[1, 3, 4, 3]
        return y
        """
    assert "p.1 = add(p, b) : f32[1, 3, 4, 3]\ny = add(a, p.1)" in ran(reassociate_bias, text)


def test_origins() -> None:
    graph = graph_of(f"{SUM}i = add(a, p) : f32[3, 4]\ny = add(i, b) : f32[3, 4]\nreturn y")
    result = reassociate_bias.run(graph, CONTEXT)
    assert result["p.1"].origin == graph["y"].origin
    assert result["y"].origin == graph["i"].origin.merged(graph["y"].origin)


def sums(seed: int) -> Graph:
    """Random sums and differences of values, products and constants of every shape that broadcasts."""
    random = np.random.default_rng(seed)
    model = Model()
    x = model.input("x", 3, 2)
    values = [model.input("a", 3, 4)]
    constants = [model.constant("b", random.standard_normal(shape)) for shape in [(4,), (), (1, 4), (3, 1), (4,)]]
    for _ in range(14):
        kind = random.random()
        if kind < 0.3 or len(values) < 2:
            values.append(model.op("matmul", x, model.constant("w", random.standard_normal((2, 4)))))
            continue
        picked = [values.pop(int(random.integers(len(values)))), values[int(random.integers(len(values)))]]
        if kind < 0.7:
            picked[int(random.integers(2))] = constants[int(random.integers(len(constants)))]
        values.append(model.op(str(random.choice(["add", "add", "sub"])), *picked))
    return model.build(*values[-3:])


def test_results_stay() -> None:
    changed = 0
    for seed in range(150):
        graph = sums(seed)
        result = reassociate_bias.run(graph, CONTEXT)
        check(result)
        assert len(result) <= len(graph)
        assert_close(graph, result, seed)
        assert body(reassociate_bias.run(result, CONTEXT)) == body(result)
        changed += result != graph
    assert changed > 30


def recurrent(steps: int) -> Graph:
    """Sums of a value, a product and a constant, one after the other, and a chain of constants as long."""
    text = ["n0 = input : f32[1, 2]", "w = constant(value=f32[2, 2]{0, 1, 1, 0}) : f32[2, 2]", "b = constant(value=f32[2]{1, -1}) : f32[2]"]
    for i in range(steps):
        text += [f"p{i} = matmul(n{i}, w) : f32[1, 2]", f"i{i} = add(n{i}, p{i}) : f32[1, 2]", f"a{i} = add(i{i}, b) : f32[1, 2]"]
        text += [f"n{i + 1} = tanh(a{i}) : f32[1, 2]"]
    text += [f"m{i} = add({f'm{i - 1}' if i else 'n0'}, b) : f32[1, 2]" for i in range(steps)]
    text += [f"q = matmul(n{steps}, w) : f32[1, 2]", f"y = add(m{steps - 1}, q) : f32[1, 2]", "return y"]
    return graph_of("\n".join(text))


@pytest.mark.soak
def test_large_graphs_take_time_in_proportion() -> None:
    graph = recurrent(1_000)
    result = reassociate_bias.run(graph, CONTEXT)
    fused = fuse_bias.run(result, CONTEXT)
    assert [node.op for node in fused].count("linear") == 1_001
    assert [node.op for node in fused].count("add") == 1_001
