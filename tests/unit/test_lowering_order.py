"""The order of layers: topological, never worse than the order given, and better where a greedy choice helps."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.device_graphs import TINY, Device, assert_computes, compiled
from tests.support.examples import examples
from tpucc.layers.kinds import LAYERS
from tpucc.lowering.lower import make_plan
from tpucc.lowering.steps import Moving


def test_branches_are_finished_one_by_one() -> None:
    """All wide layers first would keep all of them alive; each is summed up before the next is computed."""
    device = Device()
    x = device.input("x", 1, 4)
    wide = [device.fc(f"w{i}", x, 24) for i in range(6)]
    narrow = [device.fc(f"n{i}", w, 4) for i, w in enumerate(wide)]
    total = narrow[0]
    for i, n in enumerate(narrow[1:]):
        total = device.vector(f"s{i}", "add", total, n)
    graph = device.build(total)
    _, program = compiled(graph, TINY)
    assert program.lower_bound_rows <= 10
    assert_computes(graph, program)


@examples(15, 1_500)
@given(choices=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 2**16), st.integers(1, 9)), min_size=1, max_size=20))
def test_random_graphs_stay_in_order(choices: list[tuple[int, int, int]]) -> None:
    device = Device()
    values = [device.input("x", 2, 3), device.constant("c", 2, 3)]
    for number, (first, second, width) in enumerate(choices):
        a, b = values[first % len(values)], values[second % len(values)]
        if device.builder.nodes[a].type.shape == device.builder.nodes[b].type.shape:
            values.append(device.vector(f"v{number}", "add", a, b))
        else:
            values.append(device.fc(f"f{number}", a, width))
    graph = device.build(*{values[-1]: None, values[-2]: None})
    steps = make_plan(graph, TINY).steps
    done = {tensor for step in steps for tensor in step.reads if tensor.comes_from_host}
    for step in steps:
        assert set(step.reads) <= done, step.name
        done.add(step.result)
    layers = {node.name for node in graph if node.op in LAYERS}
    assert sorted(step.name for step in steps if not (isinstance(step.work, Moving) and not step.work.regions)) == sorted(layers)
    _, program = compiled(graph, TINY)
    assert_computes(graph, program)


@pytest.mark.soak
def test_ordering_is_near_linear() -> None:
    """10,000 layers that all read one tensor and one sum; quadratic work would take minutes."""
    device = Device()
    x, total = device.input("x", 1, 2), device.input("y", 1, 2)
    for number in range(5_000):
        total = device.vector(f"t{number}", "add", device.vector(f"u{number}", "multiply", x, x), total)
    graph = device.build(total)
    assert len(make_plan(graph, TINY).steps) == 10_000
