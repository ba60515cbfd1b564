"""Products of parts of one value with the same weights become one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.cases import each
from tests.support.operator_graphs import Model
from tests.support.rewrites import CONTEXT, assert_close, body, check, graph_of, lines, ran
from tpucc.ir import Graph
from tpucc.passes.batch_products import batch_products

HEAD = """
    x = input : f32[2, 3, 4]
    w = constant(value=f32[4, 2]{1, 2, 3, 4, 5, 6, 7, 8}) : f32[4, 2]
    v = constant(value=f32[2, 1]{1, 2}) : f32[2, 1]
"""


def step(number: int, squeeze: bool = True, count: int = 1) -> str:
    shape = "f32[2, 4]" if squeeze else f"f32[2, {count}, 4]"
    dropped = ", squeeze=(1,)" if squeeze else ""
    return f"x{number} = slice(x, starts=(0, {number}, 0), stops=(2, {number + count}, 4){dropped}) : {shape}"


def test_the_steps_of_a_sequence_are_one_product() -> None:
    """Two of three steps; the second one's bias and the first one's activation stay where they are."""
    text = f"""{HEAD}{step(2)}
        p2 = matmul(x2, w) : f32[2, 2]
        {step(0)}
        t = tanh(p2) : f32[2, 2]
        p0 = matmul(x0, w) : f32[2, 2]
        b = constant(value=f32[2]{{1, 2}}) : f32[2]
        a = add(p0, b) : f32[2, 2]
        return t, a"""
    assert ran(batch_products, text) == lines("""
        x = input : f32[2, 3, 4]
        w = constant(value=f32[4, 2]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}) : f32[4, 2]
        v = constant(value=f32[2, 1]{1.0, 2.0}) : f32[2, 1]
        p2.1 = matmul(x, w) : f32[2, 3, 2]
        p2 = slice(p2.1, starts=(0, 2, 0), stops=(2, 3, 2), squeeze=(1,)) : f32[2, 2]
        t = tanh(p2) : f32[2, 2]
        p0 = slice(p2.1, starts=(0, 0, 0), stops=(2, 1, 2), squeeze=(1,)) : f32[2, 2]
        b = constant(value=f32[2]{1.0, 2.0}) : f32[2]
        a = add(p0, b) : f32[2, 2]
        return t as "t", a as "a"
        """)


def test_reshaped_parts() -> None:
    text = f"""{HEAD}{step(0, squeeze=False)}
        r0 = reshape(x0, shape=(2, 4)) : f32[2, 4]
        p0 = matmul(r0, w) : f32[2, 2]
        {step(1, squeeze=False, count=2)}
        r1 = flatten(x1) : f32[2, 8]
        s1 = reshape(x1, shape=(1, 4, 4)) : f32[1, 4, 4]
        p1 = matmul(s1, w) : f32[1, 4, 2]
        return p0, p1, r1"""
    assert ran(batch_products, text).endswith(
        lines("""
        p0.1 = matmul(x, w) : f32[2, 3, 2]
        p0.2 = slice(p0.1, starts=(0, 0, 0), stops=(2, 1, 2)) : f32[2, 1, 2]
        p0 = reshape(p0.2, shape=(2, 2)) : f32[2, 2]
        x1 = slice(x, starts=(0, 1, 0), stops=(2, 3, 4)) : f32[2, 2, 4]
        r1 = flatten(x1) : f32[2, 8]
        p1.1 = slice(p0.1, starts=(0, 1, 0), stops=(2, 3, 2)) : f32[2, 2, 2]
        p1 = reshape(p1.1, shape=(1, 4, 2)) : f32[1, 4, 2]
        return p0 as "p0", p1 as "p1", r1 as "r1"
        """)
    )


def test_stacks_of_products_are_batched_whole() -> None:
    products = "\n".join(f"{step(t)}\np{t} = matmul(x{t}, w) : f32[2, 2]\nq{t} = matmul(p{t}, v) : f32[2, 1]" for t in range(3))
    text = ran(batch_products, f"{HEAD}{products}\nreturn q0, q1, q2, p1")
    assert text.count("matmul(") == 2
    assert "p0.1 = matmul(x, w) : f32[2, 3, 2]" in text
    assert "q0.1 = matmul(p0.1, v) : f32[2, 3, 1]" in text
    assert "p1 = slice(p0.1, starts=(0, 1, 0), stops=(2, 2, 2), squeeze=(1,))" in text


@each([(0.5, False), (0.4, True), (0.0, True)])
def test_rows_that_nobody_needs_count(coverage: float, batched: bool) -> None:
    """Two of five steps."""
    products = "\n".join(f"{step(t)}\np{t} = matmul(x{t}, w) : f32[2, 2]" for t in (0, 3))
    graph = graph_of(f"{HEAD.replace('2, 3, 4', '2, 5, 4')}{products}\nreturn p0, p3")
    result = batch_products(coverage=coverage).run(graph, CONTEXT)
    assert ("matmul(x, w)" in body(result)) == batched
    assert_close(graph, result)


@each(
    [
        f"{step(0)}\np = matmul(x0, w) : f32[2, 2]\nreturn p",
        f"{step(0, False, 3)}\np = matmul(x0, w) : f32[2, 3, 2]\nreturn p",
        f"{step(0)}\np = matmul(x0, w) : f32[2, 2]\nq = matmul(x0, w) : f32[2, 2]\nreturn p, q",
        f"{step(0)}\n{step(1)}\nu = constant(value=f32[4, 2]{{1, 2, 3, 4, 5, 6, 7, 9}}) : f32[4, 2]\n"
        "p = matmul(x0, w) : f32[2, 2]\nq = matmul(x1, u) : f32[2, 2]\nreturn p, q",
        f"{step(0)}\n{step(1)}\nu = input : f32[4, 2]\np = matmul(x0, u) : f32[2, 2]\nq = matmul(x1, u) : f32[2, 2]\nreturn p, q",
        f"{step(0)}\n{step(1)}\np = matmul(x0, w) : f32[2, 2] scale 0.5 zero 0\nq = matmul(x1, w) : f32[2, 2]\nreturn p, q",
        f"{step(0)}\n{step(1)} scale 0.5 zero 0\np = matmul(x0, w) : f32[2, 2]\nq = matmul(x1, w) : f32[2, 2]\nreturn p, q",
        f"{step(0)}\n{step(1)}\nt = tanh(x1) : f32[2, 4]\np = matmul(x0, w) : f32[2, 2]\nq = matmul(t, w) : f32[2, 2]\nreturn p, q",
        "a = slice(x, starts=(0, 0, 0), stops=(2, 3, 2)) : f32[2, 3, 2]\nb = slice(x, starts=(0, 0, 2), stops=(2, 3, 4)) : f32[2, 3, 2]\n"
        "p = matmul(a, v) : f32[2, 3, 1]\nq = matmul(b, v) : f32[2, 3, 1]\nreturn p, q",
        f"{step(0)}\n{step(1)}\nr0 = reshape(x0, shape=(4, 2)) : f32[4, 2]\nr1 = reshape(x1, shape=(4, 2)) : f32[4, 2]\n"
        "p = matmul(r0, v) : f32[4, 1]\nq = matmul(r1, v) : f32[4, 1]\nreturn p, q",
    ]
)
def test_products_that_stay(rest: str) -> None:
    graph = graph_of(HEAD + rest)
    assert batch_products.run(graph, CONTEXT) == graph


def test_the_product_has_the_origins_of_all() -> None:
    graph = graph_of(f"{HEAD}{step(0)}\n{step(1)}\np = matmul(x0, w) : f32[2, 2]\nq = matmul(x1, w) : f32[2, 2]\nreturn p, q")
    result = batch_products.run(graph, CONTEXT)
    assert result["p.1"].origin == graph["p"].origin.merged(graph["q"].origin).by("batch-products")
    assert result["q"].origin == graph["q"].origin


def sequence(steps: int, batch: int = 1, features: int = 3, units: int = 2) -> Graph:
    """A plain recurrent network: h = tanh(x[:, t] @ k + h @ r)."""
    random = np.random.default_rng(5)
    model = Model()
    x = model.input("x", batch, steps, features)
    k, r = (model.constant(name, random.standard_normal((size, units))) for name, size in (("k", features), ("r", units)))
    h = model.input("h", batch, units)
    for t in range(steps):
        part = model.op("slice", x, starts=(0, t, 0), stops=(batch, t + 1, features), squeeze=(1,))
        h = model.op("tanh", model.op("add", model.op("matmul", part, k), model.op("matmul", h, r)))
    return model.build(h)


def test_ragged_sequences() -> None:
    graph = sequence(7, 3, 5, 9)
    result = batch_products.run(graph, CONTEXT)
    check(result)
    assert [node.op for node in result].count("matmul") == 8
    assert_close(graph, result)


def parts(seed: int) -> Graph:
    """Random slices of two values, some reshaped, times a few weights, once or twice."""
    random = np.random.default_rng(seed)
    model = Model()
    values = [model.input("x", *map(int, random.integers(1, 5, 3))) for _ in range(2)]
    width = int(random.integers(1, 5))
    weights = [model.constant("w", random.standard_normal((model.builder.nodes[x].type.columns, width))) for x in (*values, *values)]
    square = model.constant("v", random.standard_normal((width, width)))
    outputs = []
    for _ in range(8):
        which = int(random.integers(2))
        shape = model.builder.nodes[values[which]].type.shape
        starts = tuple(int(random.integers(size)) for size in shape[:-1])
        stops = tuple(int(random.integers(start, size)) + 1 for start, size in zip(starts, shape, strict=False))
        single = tuple(axis for axis in range(2) if stops[axis] - starts[axis] == 1)
        h = model.op("slice", values[which], starts=(*starts, 0), stops=(*stops, shape[-1]), squeeze=single[: int(random.integers(3))])
        h = h if random.random() < 0.7 else model.op("reshape", h, shape=(1, -1, shape[-1]))
        h = model.op("matmul", h, weights[which + 2 * int(random.integers(2))])
        outputs.append(h if random.random() < 0.5 else model.op("matmul", h, square))
    return model.build(*outputs)


def test_results_stay() -> None:
    saved = 0
    for seed in range(60):
        graph = parts(seed)
        result = batch_products.run(graph, CONTEXT)
        check(result)
        assert_close(graph, result, seed)
        assert body(batch_products.run(result, CONTEXT)) == body(result)
        saved += body(graph).count("matmul(") - body(result).count("matmul(")
    assert saved > 100


@pytest.mark.long
def test_large_graphs_take_time_in_proportion() -> None:
    graph = sequence(4_000)
    result = batch_products.run(graph, CONTEXT)
    assert [node.op for node in result].count("matmul") == 4_001
