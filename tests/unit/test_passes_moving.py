"""Transposes sink to the edges, slices are pushed into weights."""

from __future__ import annotations

import pytest

from tests.support.cases import each
from tests.support.rewrites import CONTEXT, assert_close, body, check, drawn_graph, graph_of, lines, ran
from tpucc.diagnostics import LimitError, Origin, Span
from tpucc.ir import Graph
from tpucc.ops import OPS
from tpucc.ops.opdef import Matrix
from tpucc.passes.common_subexpressions import common_subexpressions
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.place import place
from tpucc.passes.push_slices import push_slices
from tpucc.passes.rewriter import constant_of
from tpucc.passes.sink_transposes import sink_transposes


def in_the_middle(graph: Graph, op: str) -> list[str]:
    """The nodes of an operator that have a product before and one after them."""
    products = {node.name for node in graph if isinstance(OPS[node.op].legalisation, Matrix)}
    above: set[str] = set()
    below: set[str] = set()
    for node in graph:
        if any(name in above or name in products for name in node.operands):
            above.add(node.name)
    for node in reversed(graph.nodes):
        if node.name in products or node.name in below:
            below.update(node.operands)
    return [node.name for node in graph if node.op == op and node.name in above & below]


def left_constants(graph: Graph) -> list[str]:
    """The products whose constant stands on the left of a computed value."""
    products = (node for node in graph if node.op == "matmul")
    return [n.name for n in products if constant_of(graph[n.operands[0]]) is not None and constant_of(graph[n.operands[1]]) is None]


def test_a_constant_on_the_left_moves_to_the_right() -> None:
    assert ran(
        sink_transposes,
        """
        x = input : f32[2, 3] in [-1.0, 1.0]
        c = constant(value=f32[1, 2]{5, 6}) : f32[1, 2]
        y = matmul(c, x) : f32[1, 3]
        return y
        """,
    ) == lines("""
        x = input : f32[2, 3] in [-1.0, 1.0]
        c.1 = constant(value=f32[2, 1]{5.0, 6.0}) : f32[2, 1]
        x.1 = transpose(x, perm=(1, 0)) : f32[3, 2] in [-1.0, 1.0]
        y.1 = matmul(x.1, c.1) : f32[3, 1]
        y = transpose(y.1, perm=(1, 0)) : f32[1, 3]
        return y as "y"
        """)


def test_transposes_cancel_in_a_chain() -> None:
    text = """
        x = input : f32[3, 2]
        w1 = constant(value=f32[2, 3]{1, 2, 3, 4, 5, 6}) : f32[2, 3]
        b = constant(value=f32[2, 1]{7, 8}) : f32[2, 1]
        w2 = constant(value=f32[1, 2]{9, 10}) : f32[1, 2]
        m = matmul(w1, x) : f32[2, 2]
        a = add(m, b) : f32[2, 2]
        r = relu(a) : f32[2, 2]
        y = matmul(w2, r) : f32[1, 2]
        return y
        """
    assert ran(sink_transposes, text) == lines("""
        x = input : f32[3, 2]
        w1.1 = constant(value=f32[3, 2]{1.0, 4.0, 2.0, 5.0, 3.0, 6.0}) : f32[3, 2]
        x.1 = transpose(x, perm=(1, 0)) : f32[2, 3]
        m.1 = matmul(x.1, w1.1) : f32[2, 2]
        b.1 = constant(value=f32[1, 2]{7.0, 8.0}) : f32[1, 2]
        a.1 = add(m.1, b.1) : f32[2, 2]
        r.1 = relu(a.1) : f32[2, 2]
        w2.1 = constant(value=f32[2, 1]{9.0, 10.0}) : f32[2, 1]
        y.1 = matmul(r.1, w2.1) : f32[2, 1]
        y = transpose(y.1, perm=(1, 0)) : f32[1, 2]
        return y as "y"
        """)


@each(
    [
        'c = constant(value=f32[2, 3, 4] random(0, "c")) : f32[2, 3, 4]\nm = matmul(c, x) : f32[2, 3, 5]\nreturn m',
        'c = constant(value=f32[4] random(0, "c")) : f32[4]\nm = matmul(c, x) : f32[5]\nreturn m',
        'c = constant(value=f32[1, 4] random(0, "c")) : f32[1, 4]\nm = matmul(c, x) : f32[1, 5]\nn = add(m, m) : f32[1, 5]\nreturn n, m',
    ]
)
def test_constants_of_any_rank_move_to_the_right(text: str) -> None:
    graph = graph_of(f"x = input : f32[4, 5]\n{text}")
    result = sink_transposes.run(graph, CONTEXT)
    check(result)
    assert_close(graph, result)
    assert left_constants(graph) == ["m"]
    assert not left_constants(result)


MIDDLES = {
    "a scalar": "k = constant(value=f32[]{2}) : f32[]\na = mul(k, m) : f32[4, 3]",
    "a row": "k = constant(value=f32[3]{1, 2, 3}) : f32[3]\na = sub(k, m) : f32[4, 3]",
    "a column": "k = constant(value=f32[4, 1]{1, 2, 3, 4}) : f32[4, 1]\na = sub(m, k) : f32[4, 3]",
    "an input": "v = input : f32[4, 3]\na = mul(m, v) : f32[4, 3]",
    "an input of fewer dimensions": "v = input : f32[3]\na = mul(m, v) : f32[4, 3]",
    "another such product": "n = matmul(w1, x) : f32[4, 3]\na = mul(m, n) : f32[4, 3]",
    "a transpose of the source": "n = matmul(x, w3) : f32[5, 4]\nv = input : f32[3, 5]\no = matmul(v, n) : f32[3, 4]\n"
    "t = matmul(v, w4) : f32[3, 4]\np = transpose(t, perm=(1, 0)) : f32[4, 3]\na = add(m, p) : f32[4, 3]",
    "a function that has parameters": "a = leaky_relu(m, alpha=0.5) : f32[4, 3]",
    "a value that the host reads too": "s = softmax(m) : f32[4, 3]\na = tanh(m) : f32[4, 3]",
    "a part": "p = slice(m, starts=(1, 0), stops=(3, 2)) : f32[2, 2]\n"
    "a0 = slice(m, starts=(0, 0), stops=(4, 3)) : f32[4, 3]\na = relu(a0) : f32[4, 3]",
    "two transposes": "p = transpose(m, perm=(1, 0)) : f32[3, 4]\nq = relu(p) : f32[3, 4]\na = transpose(q, perm=(-1, 0)) : f32[4, 3]",
    "fixed quantisation": "q = quantize(m, scale=0.5) : i8[4, 3] scale 0.5 zero 0\na = dequantize(q) : f32[4, 3]",
}


@each(MIDDLES.values())
def test_no_transpose_stays_between_products(middle: str) -> None:
    graph = graph_of(f"""
        x = input : f32[5, 3]
        w1 = constant(value=f32[4, 5] random(0, "w1")) : f32[4, 5]
        w2 = constant(value=f32[2, 4] random(0, "w2")) : f32[2, 4]
        w3 = constant(value=f32[3, 4] random(0, "w3")) : f32[3, 4]
        w4 = constant(value=f32[5, 4] random(0, "w4")) : f32[5, 4]
        m = matmul(w1, x) : f32[4, 3]
        {middle}
        y = matmul(w2, a) : f32[2, 3]
        return y, a{", s" if "s = softmax" in middle else ""}{", p" if "p = slice" in middle else ""}
        """)
    result = sink_transposes.run(graph, CONTEXT)
    check(result)
    assert not left_constants(result)
    assert not in_the_middle(result, "transpose")
    assert_close(graph, result)
    assert result.inputs == graph.inputs


def test_rows_in_another_order_pass_through_a_product() -> None:
    text = """
        x = input : f32[2, 3, 4]
        w = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]
        m = matmul(x, w) : f32[2, 3, 4]
        t = transpose(m, perm=(1, 0, 2)) : f32[3, 2, 4]
        a = relu(t) : f32[3, 2, 4]
        y = matmul(a, w) : f32[3, 2, 4]
        return y
        """
    assert ran(sink_transposes, text) == lines("""
        x = input : f32[2, 3, 4]
        w = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]
        m = matmul(x, w) : f32[2, 3, 4]
        a.1 = relu(m) : f32[2, 3, 4]
        y.1 = matmul(a.1, w) : f32[2, 3, 4]
        y = transpose(y.1, perm=(1, 0, 2)) : f32[3, 2, 4]
        return y as "y"
        """)


def test_transposes_before_the_first_product_stay() -> None:
    text = """
        x = input : f32[2, 3]
        w = constant(value=f32[2, 1]{1, 2}) : f32[2, 1]
        t = transpose(x, perm=(1, 0)) : f32[3, 2]
        a = relu(t) : f32[3, 2]
        y = matmul(a, w) : f32[3, 1]
        return y
        """
    graph = graph_of(text)
    assert body(sink_transposes.run(graph, CONTEXT)) == body(graph)


def test_origins_of_what_is_turned_around() -> None:
    graph = graph_of("x = input : f32[2, 3]\nc = constant(value=f32[1, 2]{5, 6}) : f32[1, 2]\ny = matmul(c, x) : f32[1, 3]\nreturn y")
    result = sink_transposes.run(graph, CONTEXT)
    assert result["y.1"].origin == result["y"].origin == Origin((Span(4, 1, 4, 2),))
    assert result["x.1"].origin == Origin((Span(2, 1, 2, 2),), (), "sink-transposes")
    assert result["c.1"].origin == Origin((Span(3, 1, 3, 2),), (), "sink-transposes")


def lstm(steps: int) -> Graph:
    """The LSTM of the language's page: gates i, f, g, o are slices of one sum of two products; 3 units, 2 features."""
    text = [
        f"x = input : f32[2, {steps}, 2]",
        'k = constant(value=f32[2, 12] random(0, "k")) : f32[2, 12]',
        'r = constant(value=f32[3, 12] random(0, "r")) : f32[3, 12]',
        'b = constant(value=f32[12] random(0, "b")) : f32[12]',
        'w = constant(value=f32[3, 1] random(0, "w")) : f32[3, 1]',
        "h0 = zeros(shape=(2, 3)) : f32[2, 3]",
        "c0 = zeros(shape=(2, 3)) : f32[2, 3]",
    ]
    for t in range(steps):
        text += [
            f"x{t} = slice(x, starts=(0, {t}, 0), stops=(2, {t + 1}, 2), squeeze=(1,)) : f32[2, 2]",
            f"xk{t} = matmul(x{t}, k) : f32[2, 12]",
            f"hr{t} = matmul(h{t}, r) : f32[2, 12]",
            f"s{t} = add(xk{t}, hr{t}) : f32[2, 12]",
            f"z{t} = add(s{t}, b) : f32[2, 12]",
        ]
        for at, (gate, function) in enumerate([("i", "sigmoid"), ("f", "sigmoid"), ("g", "tanh"), ("o", "sigmoid")]):
            text.append(f"z{gate}{t} = slice(z{t}, starts=(0, {3 * at}), stops=(2, {3 * at + 3})) : f32[2, 3]")
            text.append(f"{gate}{t} = {function}(z{gate}{t}) : f32[2, 3]")
        text += [
            f"fc{t} = mul(f{t}, c{t}) : f32[2, 3]",
            f"ig{t} = mul(i{t}, g{t}) : f32[2, 3]",
            f"c{t + 1} = add(fc{t}, ig{t}) : f32[2, 3]",
            f"tc{t} = tanh(c{t + 1}) : f32[2, 3]",
            f"h{t + 1} = mul(o{t}, tc{t}) : f32[2, 3]",
        ]
    return graph_of("\n".join([*text, f"y0 = matmul(h{steps}, w) : f32[2, 1]", "y = sigmoid(y0) : f32[2, 1]", "return y"]))


def test_all_slices_of_an_lstm_end_in_its_weights() -> None:
    graph = constant_folding.run(lstm(5), CONTEXT)
    result = push_slices.run(graph, CONTEXT)
    check(result)
    assert_close(graph, result)
    assert in_the_middle(graph, "slice")
    assert not in_the_middle(result, "slice")
    assert {node.operands for node in result if node.op == "slice"} == {("x",)}
    parts = sorted(node.type.brief for node in result if node.op == "constant" and node.origin.made_by == "push-slices")
    kernel, first_state, recurrent, bias = ["f32[2, 3]"] * 4, ["f32[2, 3]"] * 4, ["f32[3, 3]"] * 4, ["f32[3]"] * 4
    assert parts == [*kernel, *first_state, *recurrent, *bias]
    place.run(common_subexpressions.run(result, CONTEXT), CONTEXT)


def test_a_product_of_two_computed_values_stays_whole() -> None:
    """Parts of it that overlap would be computed anew, each by a product of its own."""
    text = """
        x = input : f32[3, 4]
        w = constant(value=f32[4, 4]{1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7}) : f32[4, 4]
        v = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        a = matmul(x, w) : f32[3, 4]
        t = transpose(a, perm=(1, 0)) : f32[4, 3]
        p = matmul(a, t) : f32[3, 3]
        s1 = slice(p, starts=(0, 0), stops=(2, 2)) : f32[2, 2]
        s2 = slice(p, starts=(1, 0), stops=(3, 2)) : f32[2, 2]
        y1 = matmul(s1, v) : f32[2, 2]
        y2 = matmul(s2, v) : f32[2, 2]
        return y1, y2
    """
    graph = graph_of(text)
    result = push_slices.run(graph, CONTEXT)
    check(result)
    assert_close(graph, result)
    assert [node.name for node in result if node.op == "matmul"] == ["a", "p", "y1", "y2"]


def test_columns_end_in_weights_and_rows_in_what_the_host_computes() -> None:
    text = """
        x = input : f32[4, 2]
        w = constant(value=f32[2, 3]{1, 2, 3, 4, 5, 6}) : f32[2, 3]
        b = constant(value=f32[3]{7, 8, 9}) : f32[3]
        e = constant(value=f32[4, 1]{1, 2, 3, 4}) : f32[4, 1]
        v = constant(value=f32[2, 1]{1, 2}) : f32[2, 1]
        m = linear(x, w, b, activation="tanh", pre=(-1.0, 1.0)) : f32[4, 3] in [-0.5, 0.5]
        a = mul(m, e) : f32[4, 3] scale 0.5 zero 1
        s = slice(a, starts=(1, 1), stops=(3, 3)) : f32[2, 2]
        y = matmul(s, v) : f32[2, 1]
        return y
        """
    assert ran(push_slices, text) == lines("""
        x = input : f32[4, 2]
        x.1 = slice(x, starts=(1, 0), stops=(3, 2)) : f32[2, 2]
        w.1 = constant(value=f32[2, 2]{2.0, 3.0, 5.0, 6.0}) : f32[2, 2]
        b.1 = constant(value=f32[2]{8.0, 9.0}) : f32[2]
        e.1 = constant(value=f32[2, 1]{2.0, 3.0}) : f32[2, 1]
        v = constant(value=f32[2, 1]{1.0, 2.0}) : f32[2, 1]
        m.1 = linear(x.1, w.1, b.1, activation="tanh", pre=(-1.0, 1.0)) : f32[2, 2] in [-0.5, 0.5]
        s = mul(m.1, e.1) : f32[2, 2] scale 0.5 zero 1
        y = matmul(s, v) : f32[2, 1]
        return y as "y"
        """)


@pytest.mark.parametrize(
    "text",
    [
        "s = slice(x, starts=(0, 0), stops=(3, 2)) : f32[3, 2]\ny = matmul(s, v) : f32[3, 1]\nreturn y",
        "m = matmul(x, w) : f32[3, 4]\nr = relu(m) : f32[3, 4]\ny = slice(r, starts=(0, 0), stops=(3, 2)) : f32[3, 2]\nreturn y",
    ],
    ids=["before the first product", "after the last"],
)
def test_slices_at_the_edges_stay(text: str) -> None:
    head = (
        'x = input : f32[3, 4]\nw = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]\nv = constant(value=f32[2, 1]{1, 2}) : f32[2, 1]'
    )
    graph = graph_of(f"{head}\n{text}")
    assert push_slices.run(graph, CONTEXT) is graph


PARTS = {
    "an index": ("s = slice(m, starts=(1, 0), stops=(2, 4), squeeze=(0,)) : f32[4]", "f32[4]"),
    "a slice of a slice": (
        "t = slice(m, starts=(1, 0), stops=(4, 4)) : f32[3, 4]\nu = relu(t) : f32[3, 4]\n"
        "s = slice(u, starts=(1, 0), stops=(3, 4)) : f32[2, 4]",
        "f32[2, 4]",
    ),
    "a slice of everything": ("s = slice(m, starts=(0, 0), stops=(4, 4)) : f32[4, 4]", "f32[4, 4]"),
    "a part of a transpose": (
        "t = transpose(m, perm=(1, 0)) : f32[4, 4]\ns = slice(t, starts=(1, 0), stops=(3, 4)) : f32[2, 4]",
        "f32[2, 4]",
    ),
    "columns of a view": (
        "t = reshape(m, shape=(2, 2, 4)) : f32[2, 2, 4]\nn = slice(t, starts=(0, 0, 1), stops=(2, 2, 3)) : f32[2, 2, 2]\n"
        "s = flatten(n) : f32[2, 4]",
        "f32[2, 4]",
    ),
    "rows where axes of one element come and go": (
        "t = reshape(m, shape=(4, 1, 4)) : f32[4, 1, 4]\nn = slice(t, starts=(1, 0, 0), stops=(2, 1, 4)) : f32[1, 1, 4]\n"
        "s = reshape(n, shape=(1, 4)) : f32[1, 4]",
        "f32[1, 4]",
    ),
    "explicit quantisation": (
        "q = quantize(m, scale=0.5) : i8[4, 4] scale 0.5 zero 0\nd = dequantize(q) : f32[4, 4]\n"
        "s = slice(d, starts=(1, 0), stops=(3, 4)) : f32[2, 4]",
        "f32[2, 4]",
    ),
    "a value that is read whole, too": (
        "t = add(m, m) : f32[4, 4]\nn = slice(t, starts=(1, 0), stops=(3, 4)) : f32[2, 4]\no = matmul(t, w) : f32[4, 4]\n"
        "p = slice(o, starts=(1, 0), stops=(3, 4)) : f32[2, 4]\ns = add(n, p) : f32[2, 4]",
        "f32[2, 4]",
    ),
    "one part read by two slices": (
        "n = slice(m, starts=(1, 0), stops=(3, 4)) : f32[2, 4]\np = slice(m, starts=(1, 0), stops=(3, 4)) : f32[2, 4]\n"
        "s = mul(n, p) : f32[2, 4]",
        "f32[2, 4]",
    ),
}


@each(PARTS.values())
def test_parts_of_every_kind_are_pushed(text: str, type_: str) -> None:
    rows = type_.removesuffix("4]")
    graph = graph_of(f"""
        x = input : f32[4, 4]
        w = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]
        m = matmul(x, w) : f32[4, 4]
        {text}
        y = matmul(s, w) : {rows}4]
        return y
        """)
    result = push_slices.run(graph, CONTEXT)
    check(result)
    assert_close(graph, result)
    assert in_the_middle(graph, "slice")
    assert not in_the_middle(result, "slice")


def test_a_slice_below_what_no_slice_passes_stays_below_it() -> None:
    text = """
        x = input : f32[4, 4]
        w = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]
        m = matmul(x, w) : f32[4, 4]
        a = softmax(m) : f32[4, 4]
        b = relu(a) : f32[4, 4]
        s = slice(b, starts=(1, 0), stops=(3, 4)) : f32[2, 4]
        y = matmul(s, w) : f32[2, 4]
        return y
        """
    assert "a.1 = slice(a, starts=(1, 0), stops=(3, 4)) : f32[2, 4]\ns = relu(a.1) : f32[2, 4]" in ran(push_slices, text)


def test_parts_of_weights_on_a_grid_are_weights_on_it() -> None:
    """So that their bias is added to the sums: the slice would stand between the product and its constant."""
    text = """
        x = input : f32[4, 4]
        w = constant(value=f32[4, 4] random(0, "w")) : f32[4, 4]
        q = quantize(w, scale=0.5, zero_point=0) : i8[4, 4] scale 0.5 zero 0
        v = dequantize(q) : f32[4, 4]
        m = matmul(x, v) : f32[4, 4]
        s = slice(m, starts=(0, 1), stops=(4, 3)) : f32[4, 2]
        y = relu(s) : f32[4, 2]
        return y
        """
    result = push_slices.run(graph_of(text), CONTEXT)
    check(result)
    assert [(node.op, node.type.shape) for node in result] == [
        ("input", (4, 4)),
        ("constant", (4, 2)),
        *((op, (4, 2)) for op in ("quantize", "dequantize", "matmul", "relu")),
    ]


def test_parts_have_the_places_of_the_value_and_of_the_slice() -> None:
    graph = graph_of("""x = input : f32[2, 2]
        w = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        v = constant(value=f32[1, 1]{1}) : f32[1, 1]
        m = matmul(x, w) : f32[2, 2]
        s = slice(m, starts=(0, 1), stops=(2, 2)) : f32[2, 1]
        y = matmul(s, v) : f32[2, 1]
        return y""")
    result = push_slices.run(graph, CONTEXT)
    product, part = graph["m"].origin.spans[0], graph["s"].origin.spans[0]
    assert result["s"].origin == Origin((product, part))
    assert result["w.1"].origin == Origin((graph["w"].origin.spans[0], part), (), "push-slices")


ROWS_STAY = """
    x = input : f32[4, 2]
    w = constant(value=f32[2, 3]{1, 2, 3, 4, 5, 6}) : f32[2, 3]
    b = constant(value=f32[3]{7, 8, 9}) : f32[3]
    e = constant(value=f32[4, 1]{1, 2, 3, 4}) : f32[4, 1]
    v = constant(value=f32[2, 1]{1, 2}) : f32[2, 1]
    m = linear(x, w, b) : f32[4, 3]
    a = mul(m, e) : f32[4, 3]
"""


def test_rows_stay_where_they_are_walked_over() -> None:
    text = f"""{ROWS_STAY}s = slice(a, starts=(1, 1), stops=(3, 3)) : f32[2, 2]
        y = matmul(s, v) : f32[2, 1]
        return y"""
    assert ran(push_slices(rows=False), text) == lines("""
        x = input : f32[4, 2]
        w.1 = constant(value=f32[2, 2]{2.0, 3.0, 5.0, 6.0}) : f32[2, 2]
        b.1 = constant(value=f32[2]{8.0, 9.0}) : f32[2]
        e = constant(value=f32[4, 1]{1.0, 2.0, 3.0, 4.0}) : f32[4, 1]
        v = constant(value=f32[2, 1]{1.0, 2.0}) : f32[2, 1]
        m.1 = linear(x, w.1, b.1) : f32[4, 2]
        a.1 = mul(m.1, e) : f32[4, 2]
        s = slice(a.1, starts=(1, 0), stops=(3, 2)) : f32[2, 2]
        y = matmul(s, v) : f32[2, 1]
        return y as "y"
        """)


@pytest.mark.parametrize(
    "part",
    [
        "s = slice(a, starts=(1, 0), stops=(3, 3)) : f32[2, 3]\ny = matmul(s, u) : f32[2, 1]",
        "s = slice(a, starts=(1, 0), stops=(2, 3), squeeze=(0,)) : f32[3]\ny = matmul(s, u) : f32[1]",
    ],
)
def test_slices_of_rows_alone_stay(part: str) -> None:
    u = "u = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]"
    graph = graph_of(f"{ROWS_STAY}{u}\n{part}\nreturn y")
    assert push_slices(rows=False).run(graph, CONTEXT) is graph


@each(
    [
        (
            "r = slice(a, starts=(1, 0), stops=(3, 3)) : f32[2, 3]\nt = tanh(r) : f32[2, 3]\n"
            "s = slice(t, starts=(0, 1), stops=(2, 3)) : f32[2, 2]\ny = matmul(s, v) : f32[2, 1]",
            "r.1 = slice(a.1, starts=(1, 0), stops=(3, 2)) : f32[2, 2]\ns = tanh(r.1) : f32[2, 2]",
        ),
        (
            "s = slice(a, starts=(2, 1), stops=(3, 3), squeeze=(0,)) : f32[2]\ny = matmul(s, v) : f32[1]",
            "s = slice(a.1, starts=(2, 0), stops=(3, 2), squeeze=(0,)) : f32[2]",
        ),
        (
            "s = slice(a, starts=(1, 1), stops=(3, 2), squeeze=(1,)) : f32[2]\ny = matmul(s, v) : f32[1]",
            "s = slice(a.1, starts=(1, 0), stops=(3, 1), squeeze=(1,)) : f32[2]",
        ),
        (
            "t = transpose(a, perm=(1, 0)) : f32[3, 4]\ns = slice(t, starts=(0, 1), stops=(3, 3)) : f32[3, 2]\n"
            "y = matmul(s, v) : f32[3, 1]",
            "t = transpose(a, perm=(1, 0)) : f32[3, 4]\ns = slice(t, starts=(0, 1), stops=(3, 3)) : f32[3, 2]",
        ),
    ]
)
def test_columns_pass_slices_of_rows(part: str, found: str) -> None:
    assert found in ran(push_slices(rows=False), f"{ROWS_STAY}{part}\nreturn y")


@pytest.mark.parametrize("optimisation", [push_slices, push_slices(rows=False)], ids=["rows", "columns"])
def test_channels_end_in_kernels(optimisation: push_slices) -> None:
    text = """
        x = input : f32[1, 5, 4, 2]
        k = constant(value=f32[1, 1, 2, 3]{1, 2, 3, 4, 5, 6}) : f32[1, 1, 2, 3]
        b = constant(value=f32[3]{7, 8, 9}) : f32[3]
        l = constant(value=f32[1, 1, 2, 1]{1, 2}) : f32[1, 1, 2, 1]
        c = conv2d(x, k, padding=1) : f32[1, 7, 6, 3]
        d = add(c, b) : f32[1, 7, 6, 3]
        p = max_pool(d, size=3, stride=2) : f32[1, 3, 2, 3]
        q = avg_pool(p, size=2, stride=1) : f32[1, 2, 1, 3]
        s = slice(q, starts=(0, 0, 0, 1), stops=(1, 2, 1, 3)) : f32[1, 2, 1, 2]
        y = conv2d(s, l) : f32[1, 2, 1, 1]
        return y
        """
    assert ran(optimisation, text) == lines("""
        x = input : f32[1, 5, 4, 2]
        k.1 = constant(value=f32[1, 1, 2, 2]{2.0, 3.0, 5.0, 6.0}) : f32[1, 1, 2, 2]
        b.1 = constant(value=f32[2]{8.0, 9.0}) : f32[2]
        l = constant(value=f32[1, 1, 2, 1]{1.0, 2.0}) : f32[1, 1, 2, 1]
        c.1 = conv2d(x, k.1, padding=1) : f32[1, 7, 6, 2]
        d.1 = add(c.1, b.1) : f32[1, 7, 6, 2]
        p.1 = max_pool(d.1, size=3, stride=2) : f32[1, 3, 2, 2]
        s = avg_pool(p.1, stride=1) : f32[1, 2, 1, 2]
        y = conv2d(s, l) : f32[1, 2, 1, 1]
        return y as "y"
        """)
    part = text.replace("stops=(1, 2, 1, 3)) : f32[1, 2, 1, 2]", "stops=(1, 1, 1, 3)) : f32[1, 1, 1, 2]")
    assert "s = " in ran(optimisation, part.replace("y = conv2d(s, l) : f32[1, 2, 1, 1]", "y = conv2d(s, l) : f32[1, 1, 1, 1]"))


def test_too_many_parts_are_refused() -> None:
    with pytest.raises(LimitError) as caught:
        push_slices(largest=50).run(lstm(3), CONTEXT)
    assert caught.value.diagnostics[0].code == "E0650"
    assert caught.value.diagnostics[0].span is not None


@pytest.mark.parametrize("optimisation", [sink_transposes, push_slices, push_slices(rows=False)], ids=["sink", "push", "columns"])
def test_results_stay(optimisation: sink_transposes | push_slices) -> None:
    """Products of other shapes add in another order; a second run changes at most the order of nodes."""
    changed = 0
    for seed in range(100):
        graph = drawn_graph(seed)
        result = optimisation.run(graph, CONTEXT)
        check(result)
        assert_close(graph, result, seed)
        assert sorted(body(optimisation.run(result, CONTEXT)).splitlines()) == sorted(body(result).splitlines())
        changed += result != graph
        if optimisation is sink_transposes:
            assert not left_constants(result)
    assert changed > 20
