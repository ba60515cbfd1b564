"""Bias fusion, activation fusion and the folding of scales."""

from __future__ import annotations

import pytest

from tests.support.cases import each
from tests.support.rewrites import CONTEXT, assert_close, assert_equal, check, drawn_graph, graph_of, lines, ran
from tpucc.diagnostics import Origin, Span
from tpucc.ir.printer import print_graph
from tpucc.ops.linear import LinearAttributes
from tpucc.passes.base import Pass
from tpucc.passes.constant_folding import constant_folding
from tpucc.passes.folding import fold_scales
from tpucc.passes.fuse_activation import fuse_activation
from tpucc.passes.fuse_bias import fuse_bias

PRODUCT = """
    x = input : f32[3, 2]
    w = constant(value=f32[2, 4]{1, 2, 3, 4, 5, 6, 7, 8}) : f32[2, 4]
    b = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]
    m = matmul(x, w) : f32[3, 4]
"""


@each(
    [
        ("y = add(m, b) : f32[3, 4]", "linear(x, w, b)"),
        ("y = add(b, m) : f32[3, 4]", "linear(x, w, b)"),
        ("y = sub(m, b) : f32[3, 4]", "linear(x, w, b.1)"),
        ("y = sub(b, m) : f32[3, 4]", "sub(b, m)"),
        ("y = add(m, m) : f32[3, 4]", "add(m, m)"),
        ("y = mul(m, b) : f32[3, 4]", "mul(m, b)"),
    ]
)
def test_a_bias_is_fused_from_either_side(bias: str, found: str) -> None:
    assert f"y = {found} : f32[3, 4]" in ran(fuse_bias, f"{PRODUCT}{bias}\nreturn y")


@each(
    [
        ("f32[]{2.5}", "f32[4]{2.5, 2.5, 2.5, 2.5}"),
        ("f32[1]{2.5}", "f32[4]{2.5, 2.5, 2.5, 2.5}"),
        ("f32[1, 1]{2.5}", "f32[4]{2.5, 2.5, 2.5, 2.5}"),
        ("f32[1, 4]{1, 2, 3, 4}", "f32[4]{1.0, 2.0, 3.0, 4.0}"),
        ("f32[3, 1]{1, 2, 3}", None),
        ("f32[3, 4]{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}", None),
    ]
)
def test_a_bias_is_one_value_a_column(constant: str, bias: str | None) -> None:
    shape = constant.split("{")[0]
    text = ran(fuse_bias, f"{PRODUCT}k = constant(value={constant}) : {shape}\ny = add(m, k) : f32[3, 4]\nreturn y")
    assert (f"k.1 = constant(value={bias}) : f32[4]" in text and "y = linear(x, w, k.1)" in text) if bias else "linear" not in text


def test_a_bias_that_adds_axes_is_not_fused() -> None:
    text = "k = constant(value=f32[1, 1, 4]{1, 2, 3, 4}) : f32[1, 1, 4]\ny = add(m, k) : f32[1, 3, 4]\nreturn y"
    assert "linear" not in ran(fuse_bias, PRODUCT + text)


def test_a_second_bias_joins_the_first() -> None:
    text = f"{PRODUCT}a = add(m, b) : f32[3, 4]\nc = add(b, a) : f32[3, 4]\nd = sub(c, b) : f32[3, 4]\nreturn d"
    assert ran(fuse_bias, text) == lines("""
        x = input : f32[3, 2]
        w = constant(value=f32[2, 4]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}) : f32[2, 4]
        b.2 = constant(value=f32[4]{1.0, 2.0, 3.0, 4.0}) : f32[4]
        d = linear(x, w, b.2) : f32[3, 4]
        return d as "d"
        """)


@each(
    [
        "y = add(m, b) : f32[3, 4]\nreturn y, m",
        "y = add(m, b) : f32[3, 4]\nz = relu(m) : f32[3, 4]\nreturn y, z",
        'a = linear(x, w, activation="relu") : f32[3, 4]\ny = add(a, b) : f32[3, 4]\nreturn y',
        "v = input : f32[4, 4]\nn = matmul(m, v) : f32[3, 4]\ny = add(n, b) : f32[3, 4]\nreturn y",
    ]
)
def test_a_product_that_must_stay_is_not_fused(rest: str) -> None:
    assert "y = add(" in ran(fuse_bias, PRODUCT + rest)


def test_a_product_with_fixed_quantisation_is_not_fused() -> None:
    text = PRODUCT.replace("m = matmul(x, w) : f32[3, 4]", "m = matmul(x, w) : f32[3, 4] scale 0.5 zero 1")
    assert "y = add(m, b)" in ran(fuse_bias, f"{text}y = add(m, b) : f32[3, 4]\nreturn y")
    assert "y = relu(m)" in ran(fuse_activation, f"{text}y = relu(m) : f32[3, 4]\nreturn y")
    assert "y = mul(m, b)" in ran(fold_scales, f"{text}y = mul(m, b) : f32[3, 4]\nreturn y")


def test_a_result_with_fixed_quantisation_keeps_it() -> None:
    fused = ran(fuse_bias, f"{PRODUCT}y = add(m, b) : f32[3, 4] in [-1.0, 1.0] scale 0.5 zero 1\nreturn y")
    assert "y = linear(x, w, b) : f32[3, 4] in [-1.0, 1.0] scale 0.5 zero 1" in fused


def test_fused_nodes_have_the_places_of_all_the_product_first() -> None:
    graph = graph_of(f"{PRODUCT}a = add(m, b) : f32[3, 4]\ny = tanh(a) : f32[3, 4]\nreturn y")
    fused = fuse_activation.run(fuse_bias.run(graph, CONTEXT), CONTEXT)
    (node,) = (node for node in fused if node.op == "linear")
    assert node.name == "y"
    assert node.origin == Origin((graph["m"].origin.spans[0], graph["a"].origin.spans[0], graph["y"].origin.spans[0]))
    assert node.origin.spans[0] == Span(6, 5, 6, 6)


def test_a_table_keeps_the_range_before_it_and_a_clamp_does_not() -> None:
    text = """
        x = input : f32[3, 2]
        w = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        b = constant(value=f32[2]{1, 2}) : f32[2]
        m = matmul(x, w) : f32[3, 2] in [-2.0, 3.0]
        a = leaky_relu(m, alpha=0.5) : f32[3, 2] in [-1.0, 3.0]
        n = linear(x, w, b) : f32[3, 2] in [-4.0, 5.0]
        c = relu(n) : f32[3, 2] in [0.0, 5.0]
        o = matmul(x, w) : f32[3, 2]
        d = sigmoid(o) : f32[3, 2]
        return a, c, d
        """
    assert ran(fuse_activation, text) == lines("""
        x = input : f32[3, 2]
        w = constant(value=f32[2, 2]{1.0, 2.0, 3.0, 4.0}) : f32[2, 2]
        b = constant(value=f32[2]{1.0, 2.0}) : f32[2]
        a = linear(x, w, activation="leaky_relu", parameters=(0.5,), pre=(-2.0, 3.0)) : f32[3, 2] in [-1.0, 3.0]
        c = linear(x, w, b, activation="relu") : f32[3, 2] in [0.0, 5.0]
        d = linear(x, w, activation="sigmoid") : f32[3, 2]
        return a as "a", c as "c", d as "d"
        """)


def test_only_one_activation_is_fused() -> None:
    text = ran(fuse_activation, f"{PRODUCT}a = relu(m) : f32[3, 4]\ny = tanh(a) : f32[3, 4]\nz = softmax(y) : f32[3, 4]\nreturn z")
    assert 'a = linear(x, w, activation="relu")' in text
    assert "y = tanh(a)" in text


def test_parameters_reach_the_fused_node() -> None:
    graph = graph_of(f"{PRODUCT}y = elu(m) : f32[3, 4]\nz = gelu(y, approximate=true) : f32[3, 4]\nreturn z")
    fused = fuse_activation.run(graph, CONTEXT)["y"].attributes
    assert fused == LinearAttributes(
        "elu", tuple(getattr(graph["y"].attributes, name) for name in graph["y"].attributes.__dataclass_fields__)
    )


def test_scales_fold_into_weights_and_biases() -> None:
    assert ran(
        fold_scales,
        """
        x = input : f32[3, 2]
        w = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        b = constant(value=f32[2]{1, 2}) : f32[2]
        s = constant(value=f32[1, 2]{2, 10}) : f32[1, 2]
        h = constant(value=f32[]{0.5}) : f32[]
        r = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]
        m = matmul(x, w) : f32[3, 2]
        n = mul(m, s) : f32[3, 2]
        o = mul(h, n) : f32[3, 2]
        l = linear(x, w, b) : f32[3, 2]
        p = mul(l, s) : f32[3, 2]
        q = linear(x, w, activation="tanh") : f32[3, 2]
        t = mul(q, s) : f32[3, 2]
        u = matmul(x, w) : f32[3, 2]
        v = mul(u, r) : f32[3, 2]
        return o, p, t, v
        """,
    ) == lines("""
        x = input : f32[3, 2]
        w = constant(value=f32[2, 2]{1.0, 2.0, 3.0, 4.0}) : f32[2, 2]
        s = constant(value=f32[1, 2]{2.0, 10.0}) : f32[1, 2]
        r = constant(value=f32[3, 1]{1.0, 2.0, 3.0}) : f32[3, 1]
        w.1 = constant(value=f32[2, 2]{2.0, 20.0, 6.0, 40.0}) : f32[2, 2]
        w.2 = constant(value=f32[2, 2]{1.0, 10.0, 3.0, 20.0}) : f32[2, 2]
        o = matmul(x, w.2) : f32[3, 2]
        b.1 = constant(value=f32[2]{2.0, 20.0}) : f32[2]
        p = linear(x, w.1, b.1) : f32[3, 2]
        q = linear(x, w, activation="tanh") : f32[3, 2]
        t = mul(q, s) : f32[3, 2]
        u = matmul(x, w) : f32[3, 2]
        v = mul(u, r) : f32[3, 2]
        return o as "o", p as "p", t as "t", v as "v"
        """)


def test_a_scale_that_overflows_or_vanishes_stays() -> None:
    text = """
        x = input : f32[1, 1]
        w = constant(value=f32[1, 1]{1e30}) : f32[1, 1]
        s = constant(value=f32[]{1e30}) : f32[]
        i = constant(value=f32[]{1e-30}) : f32[]
        n = mul(x, i) : f32[1, 1]
        o = mul(n, i) : f32[1, 1]
        m = matmul(o, w) : f32[1, 1]
        y = mul(m, s) : f32[1, 1]
        return y
        """
    graph = graph_of(text)
    folded = print_graph(fold_scales.run(graph, CONTEXT))
    assert "y = mul(m, s)" in folded
    assert "o = mul(n, i)" in folded, "1e-30 · 1e-30 is 0 in float32, and x · 1e-30 · 1e-30 isn't"


@each(
    [
        ("a = add(x, c) : f32[2]\ny = add(a, d) : f32[2]", "c.1 = constant(value=f32[2]{11.0, 22.0}) : f32[2]\ny = add(x, c.1)"),
        ("a = add(c, x) : f32[2]\ny = sub(a, d) : f32[2]", "c.1 = constant(value=f32[2]{-9.0, -18.0}) : f32[2]\ny = add(x, c.1)"),
        ("a = sub(x, c) : f32[2]\ny = sub(a, d) : f32[2]", "c.1 = constant(value=f32[2]{-11.0, -22.0}) : f32[2]\ny = add(x, c.1)"),
        ("a = sub(c, x) : f32[2]\ny = add(a, d) : f32[2]", "c.1 = constant(value=f32[2]{11.0, 22.0}) : f32[2]\ny = sub(c.1, x)"),
        ("a = sub(x, c) : f32[2]\ny = sub(d, a) : f32[2]", "c.1 = constant(value=f32[2]{11.0, 22.0}) : f32[2]\ny = sub(c.1, x)"),
        ("a = sub(c, x) : f32[2]\ny = sub(d, a) : f32[2]", "c.1 = constant(value=f32[2]{9.0, 18.0}) : f32[2]\ny = add(x, c.1)"),
        ("a = mul(c, x) : f32[2]\ny = mul(a, d) : f32[2]", "c.1 = constant(value=f32[2]{10.0, 40.0}) : f32[2]\ny = mul(x, c.1)"),
        ("a = mul(c, x) : f32[2]\ny = add(a, d) : f32[2]", "a = mul(c, x) : f32[2]\ny = add(a, d)"),
    ]
)
def test_constants_of_chains_are_joined(chain: str, found: str) -> None:
    text = ran(
        fold_scales,
        f"""
        x = input : f32[2]
        c = constant(value=f32[2]{{1, 2}}) : f32[2]
        d = constant(value=f32[2]{{10, 20}}) : f32[2]
        {chain}
        return y
        """,
    )
    found = found if "a =" in found else found.replace("c.1", "d.1")
    assert found in text


def test_joined_constants_grow_no_larger_than_they_are() -> None:
    text = """
        x = input : f32[3, 4]
        c = constant(value=f32[3, 1]{1, 2, 3}) : f32[3, 1]
        d = constant(value=f32[4]{1, 2, 3, 4}) : f32[4]
        e = constant(value=f32[]{10}) : f32[]
        a = add(x, c) : f32[3, 4]
        b = add(a, d) : f32[3, 4]
        y = add(b, e) : f32[3, 4]
        return y
        """
    assert ran(fold_scales, text) == lines("""
        x = input : f32[3, 4]
        c = constant(value=f32[3, 1]{1.0, 2.0, 3.0}) : f32[3, 1]
        a = add(x, c) : f32[3, 4]
        e.1 = constant(value=f32[4]{11.0, 12.0, 13.0, 14.0}) : f32[4]
        y = add(a, e.1) : f32[3, 4]
        return y as "y"
        """)


def test_what_changes_nothing_goes() -> None:
    text = """
        x = input : f32[2, 3]
        z = constant(value=f32[]{0}) : f32[]
        o = constant(value=f32[3]{1, 1, 1}) : f32[3]
        n = constant(value=f32[]{-1}) : f32[]
        t = constant(value=f32[1, 1, 1]{0}) : f32[1, 1, 1]
        a = add(x, z) : f32[2, 3]
        b = mul(o, a) : f32[2, 3]
        c = sub(b, z) : f32[2, 3]
        d = mul(c, n) : f32[2, 3]
        e = mul(d, n) : f32[2, 3]
        f = sub(z, e) : f32[2, 3]
        g = sub(z, f) : f32[2, 3]
        h = reshape(g, shape=(2, 3)) : f32[2, 3]
        i = flatten(h) : f32[2, 3]
        j = transpose(i, perm=(0, 1)) : f32[2, 3]
        k = relu(j) : f32[2, 3]
        l = add(k, t) : f32[1, 2, 3]
        m = add(k, z) : f32[2, 3] scale 0.5 zero 0
        return k, l, m, a
        """
    assert ran(fold_scales, text) == lines("""
        x = input : f32[2, 3]
        z = constant(value=f32[]{0.0}) : f32[]
        t = constant(value=f32[1, 1, 1]{0.0}) : f32[1, 1, 1]
        k = relu(x) : f32[2, 3]
        l = add(k, t) : f32[1, 2, 3]
        m = add(k, z) : f32[2, 3] scale 0.5 zero 0
        return k as "k", l as "l", m as "m", x as "a"
        """)


def test_views_of_views_are_one() -> None:
    text = """
        x = input : f32[2, 3, 4]
        a = reshape(x, shape=(6, -1)) : f32[6, 4]
        b = flatten(a) : f32[6, 4]
        c = reshape(b, shape=(24,)) : f32[24]
        d = reshape(c, shape=(2, 3, 4)) : f32[2, 3, 4]
        e = transpose(x, perm=(1, 2, 0)) : f32[3, 4, 2]
        f = transpose(e, perm=(1, 2, 0)) : f32[4, 2, 3]
        g = transpose(f, perm=(1, -1, 0)) : f32[2, 3, 4]
        h = relu(d) : f32[2, 3, 4]
        i = relu(g) : f32[2, 3, 4]
        return c, f, h, i
        """
    assert ran(fold_scales, text) == lines("""
        x = input : f32[2, 3, 4]
        c = reshape(x, shape=(24,)) : f32[24]
        f = transpose(x, perm=(2, 0, 1)) : f32[4, 2, 3]
        h = relu(x) : f32[2, 3, 4]
        i = relu(x) : f32[2, 3, 4]
        return c as "c", f as "f", h as "h", i as "i"
        """)


def test_values_that_others_read_are_not_folded_away() -> None:
    text = """
        x = input : f32[2, 2]
        w = constant(value=f32[2, 2]{1, 2, 3, 4}) : f32[2, 2]
        s = constant(value=f32[]{2}) : f32[]
        m = matmul(x, w) : f32[2, 2]
        n = mul(m, s) : f32[2, 2]
        a = add(n, s) : f32[2, 2]
        b = add(a, s) : f32[2, 2]
        return m, a, b
        """
    assert ran(fold_scales, text).count(" = ") == 7


@pytest.mark.parametrize("optimisation", [fuse_bias, fuse_activation, fold_scales], ids=lambda p: p.name)
def test_results_stay(optimisation: Pass) -> None:
    """Fusion alone changes no bit as long as no product has two biases; folded scales change the last ones."""
    changed = 0
    for seed in range(80):
        graph = constant_folding.run(drawn_graph(seed), CONTEXT)
        result = optimisation.run(graph, CONTEXT)
        check(result)
        (assert_equal if optimisation is fuse_activation else assert_close)(graph, result, seed)
        assert print_graph(optimisation.run(result, CONTEXT)) == print_graph(result)
        changed += result != graph
    assert changed > 3


def test_one_bias_changes_no_bit() -> None:
    for bias in ("add(m, b)", "add(b, m)", "sub(m, b)"):
        graph = graph_of(f"{PRODUCT}y = {bias} : f32[3, 4]\nreturn y")
        assert_equal(graph, fuse_bias.run(graph, CONTEXT))
