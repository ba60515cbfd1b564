"""The time of a step of training: by hand for a small network, its rules for larger ones, and the command that prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.diagnostics import Source, UsageError
from tpucc.ir import Graph
from tpucc.machines.v2.units import Unit, Work
from tpucc.target import Target, load_target
from tpucc.training.numerics import DEFAULT, Numerics
from tpucc.training.start import step_of
from tpucc.training.timing.operations import operations
from tpucc.training.timing.step_time import StepTime, TimedGroup

V2 = load_target("tpu_v2")
NET = """\
param batch = 256
weights random(seed=1)
model net(x: f32[batch, 256]) -> f32[batch, 128]:
    weight w: f32[256, 128] = "w"
    return x @ w
optimizer sgd(rate=0.1)
train(x: f32[batch, 256], goal: f32[batch, 128]) -> f32[]:
    return mean_squared_error(net(x), goal)
"""
PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
US = 1e-6
BYTES_A_US = 300e3
"""Half of the chip's 600 GB/s."""
CYCLES_A_US = 700.0


def timed(text: str, cores: int = 1, target: Target = V2, numerics: Numerics = DEFAULT, **params: int) -> StepTime:
    _, step = step_of(Source("net.tpu", text), {name: str(value) for name, value in params.items()}, cores, numerics)
    return StepTime(step, target)


def program(name: str) -> str:
    return next(PROGRAMS.glob(f"*{name}.tpu")).read_text()


def microseconds(group: TimedGroup) -> dict[str, float]:
    return {str(unit): seconds / US for unit, seconds in group.busy.items() if seconds}


def test_a_small_step_by_hand() -> None:
    """Rows have 128 lanes of 4 bytes, so x has 512 rows of 512 bytes, and w, the goal and the result 256 each."""
    x, w, y = 512 * 512, 256 * 512, 256 * 512
    forward, loss, backward, update = timed(NET).groups
    # y = x @ w: two tiles of w, through which 256 rows stream.
    assert microseconds(forward) == pytest.approx({"array": 2 * 256 / CYCLES_A_US, "memory": (x + w + y) / BYTES_A_US})
    # The loss takes y as it leaves the array: a difference, its square, a sum. At the end the lanes of one row are added up in seven steps.
    assert microseconds(loss) == pytest.approx(
        {"vector": 256 * 3 / 16 / CYCLES_A_US, "lanes": 7 / 8 / CYCLES_A_US, "memory": y / BYTES_A_US}
    )
    # dw = xᵀ @ dy, where dy = (y - goal) · c is computed as it streams; four blocks are turned. Nothing but the update reads dw.
    assert [node.op for node in backward.group.computed] == ["sub", "mul", "matmul"]
    cycles = {"array": 512, "lanes": 4 * 128, "vector": 2 * 256 / 16}
    found = {unit: count / CYCLES_A_US for unit, count in cycles.items()} | {"memory": (x + 2 * y) / BYTES_A_US}
    assert microseconds(backward) == pytest.approx(found)
    # w - rate · dw reads w and writes it.
    assert microseconds(update) == pytest.approx({"vector": 2 * 256 / 16 / CYCLES_A_US, "memory": 2 * w / BYTES_A_US})
    assert [group.bound for group in (forward, loss, backward, update)] == [Unit.MEMORY] * 4
    time = timed(NET)
    assert time.seconds == pytest.approx(sum(group.busy[Unit.MEMORY] + 1e-6 for group in time.groups))
    assert time.held_bytes == x + y + w + max(y, w)  # the inputs, the weight, and the result until it is read, then the next weight
    assert time.examples == 256


def test_two_cores_exchange_the_gradient() -> None:
    """Both cores of a chip exchange by its memory: half of w there and half back, 2 hops; before and after it is read and written."""
    w = 256 * 128 * 4
    exchange = next(group for group in timed(NET, 2).groups if group.busy[Unit.LINKS])
    reduced = w + 4
    assert exchange.busy[Unit.LINKS] / US == pytest.approx(reduced / 150e3 + 2 + 2 * w / BYTES_A_US)
    assert exchange.bytes["gradients"] == 2 * w


@each(
    [
        ((1024, 512, 256), True, 4 * 2 * 1024, 0),
        ((64, 512, 256), True, 4 * 2 * 128, 0),  # a tile is pushed a row a cycle, however few rows stream
        ((130, 200, 300), True, 2 * 3 * 130, 0),
        ((256, 512, 1024), False, 4 * 8 * 256, 2 * 4 * 128),  # tiles of the right side; the rows that stream are turned
        ((1024, 512, 256), False, 4 * 8 * 256, 2 * (4 + 8) * 128),  # of the left: as many cycles, and fewer blocks, results included
        ((100, 512, 300), False, 4 * 3 * 128, 4 * 128),  # the left side would take 1,200 cycles of the array, and 1,920 of the lanes
        ((100, 512, 3000), False, 4 * 24 * 128, 4 * 128),
    ]
)
def test_the_cheaper_way_through_the_array(sizes: tuple[int, int, int], weights: bool, cycles: int, turning: int) -> None:
    work = Work(V2)
    work.add_product(*sizes, weights=weights)
    seconds = work.seconds()
    assert seconds[Unit.ARRAY] * V2.clock_hz == pytest.approx(cycles)
    assert seconds[Unit.LANES] * V2.clock_hz == pytest.approx(turning)


def test_two_matrix_units_share_the_columns() -> None:
    work = Work(load_target("tpu_v3"))
    work.add_product(1000, 128, 300, weights=True)  # three tiles: two for one unit, one for the other
    assert work.seconds()[Unit.ARRAY] * 940e6 == pytest.approx(2 * 1000)


@each(
    [
        ("add", 1),
        ("relu", 1),
        ("mean_squared_error", 3),  # a difference, a square, a sum
        ("exp", 24),
        ("sigmoid", 30),
        ("tanh", 45),
        ("softmax_cross_entropy", 27),  # most of it an exponential
        ("one_hot", 1),
        ("avg_pool_gradient", 2),
    ]
)
def test_operations_are_counted_by_computing(op: str, count: int) -> None:
    assert operations(op) == count


@each(["05_digits_cnn", "06_digits_lstm", "14_digits_resnet"])
def test_a_step_gets_no_slower_on_a_better_machine(name: str) -> None:
    base = timed(program(name))
    for field in ("clock_hz", "weight_bandwidth", "sublanes", "vector_alus"):
        faster = load_target("tpu_v2", {field: getattr(V2, field) * 2})
        assert timed(program(name), target=faster).seconds <= base.seconds
    assert timed(program(name), target=load_target("tpu_v2", {"hbm_latency_seconds": 0})).seconds < base.seconds


BOTH = Numerics(activations="bf16", statistics="one-pass")
CASES = [
    (name, cores, numerics)
    for name in ("02_iris", "04_digits_mlp", "05_digits_cnn", "06_digits_lstm", "14_digits_resnet")
    for cores, numerics in ((1, DEFAULT), (1 if name == "02_iris" else 2, BOTH))
]


@each(CASES)
def test_what_holds_of_each_program(name: str, cores: int, numerics: Numerics) -> None:
    time = timed(program(name), cores, numerics=numerics)
    graph = time.step.graph
    given = {node.name for node in graph if not node.operands}
    stored = [value for group in time.groups for value in group.group.written]
    assert len(stored) == len(set(stored)), "each value is stored by one group"
    made, written = set[str](), set[str]()
    for group in time.groups:
        assert set(group.group.after) - given <= made, "a group waits for what earlier ones make"
        assert set(group.group.read) - given <= written, "what it reads was stored"
        assert group.group.near <= made, "what it takes as it leaves the array was made"
        assert {node.name for node in group.group.nodes} <= {node.name for node in group.group.computed}
        made |= {node.name for node in group.group.nodes}
        written |= set(group.group.written)
    read = {value for group in time.groups for value in group.group.read}
    views = {name for output in graph.output_nodes for name in behind(graph, output)}
    assert written <= read | views, "what is stored is read, or is an output"
    assert max(time.busy.values()) <= time.overlapped_seconds <= time.seconds
    assert sum(time.limited.values()) + time.latency_seconds == pytest.approx(time.seconds)


def behind(graph: Graph, name: str) -> set[str]:
    """A node, and the values that it is a view of."""
    found = {name}
    while len(graph[name].operands) == 1:
        (name,) = graph[name].operands
        found.add(name)
    return found


def net(body: str, inputs: str = "x: f32[batch, 128]", rate: str = "0.1") -> str:
    """A source whose `model m` has this body, and whose loss is the mean of its squared result."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    names = ", ".join(each.split(":")[0].strip() for each in inputs.split(", ") if ":" in each)
    return (
        f"param batch = 128\nweights random(seed=1)\nmodel m({inputs}):\n{lines}\noptimizer sgd(rate={rate})\n"
        f"train({inputs}) -> f32[]:\n    h = m({names})\n    return mean(h * h)\n"
    )


def test_a_product_that_a_later_loop_reads_is_stored() -> None:
    """x @ w1 is complete two products before what reads it."""
    body = "weight w1: f32[128, 128]\nweight w2: f32[128, 128]\nweight w3: f32[128, 128]\nreturn (x @ w1) + relu(relu(x @ w2) @ w3)"
    time = timed(net(body))
    (result,) = next(group for group in time.groups if group.name == "w1").group.nodes
    assert not [group for group in time.groups if result.name in group.group.near]
    assert [group for group in time.groups if result.name in group.group.read]


def test_a_fixed_weight_is_stationary_as_a_trained_one() -> None:
    """Nothing is turned for its product, and the group has its key."""
    body = "weight w: f32[128, 128]\nweight v: f32[128, 128] fixed\nreturn (x @ w) @ v"
    group = next(group for group in timed(net(body)).groups if group.name == "v")
    assert group.busy[Unit.LANES] == 0


def test_examples_are_counted_by_the_first_axis_of_any_input() -> None:
    assert timed(net("weight w: f32[1]\nreturn x * w", "x: f32[batch]")).examples == 128


def test_two_sums_of_one_product_are_one_loop() -> None:
    """So statistics in one pass read a convolution's result once, and in two passes twice."""
    text = program("14_digits_resnet")
    readers = []
    for statistics in ("two-pass", "one-pass"):
        time = timed(text, numerics=Numerics(statistics=statistics), batch=256)
        convolution = next(group.group.nodes[0].name for group in time.groups if group.group.nodes[0].op == "conv2d")
        loops = [group.group for group in time.groups if convolution in group.group.operands]
        readers.append(sum("mean" in {node.op for node in loop.nodes} for loop in loops))
    assert readers == [2, 1]


def test_a_slice_and_a_lookup_read_what_they_take() -> None:
    whole = timed(net("weight w: f32[128, 64]\nreturn x[:, 0] @ w", "x: f32[batch, 32, 128]"))
    assert whole.groups[0].bytes["inputs"] == 128 * 128 * 4
    table = timed(net("weight w: f32[5000, 128]\nreturn embedding(i, w)", "i: i32[batch] in [0, 4999]"))
    lookups = [group for group in table.groups if "embedding" in {node.op for node in group.group.computed}]
    assert {group.bytes["states"] for group in lookups} == {128 * 128 * 4}


def test_a_group_waits_for_what_is_behind_a_scalar() -> None:
    """The product streams x / n, and n is the root of a sum of another input."""
    body = "weight v: f32[128, 128]\nn = sqrt(sum(a * a))\nreturn (x / n) @ v"
    time = timed(net(body, "x: f32[batch, 128], a: f32[batch, 128]"))
    total, product = (group for group in time.groups if group.role == "forward" and group.group.nodes[0].op in ("sum", "matmul"))
    assert total.group.nodes[0].name in product.group.after
    assert total.group.nodes[0].name not in product.group.operands


@each([("sum(x * x, axis=2)", 4 * 128), ("sum(x * x, axis=1)", 0), ("sum(x * x, axis=[1, 2])", 4)])
def test_lanes_are_added_up_where_the_last_axis_is_summed(expression: str, results: int) -> None:
    time = timed(net(f"weight w: f32[128]\nreturn {expression.replace('x * x', 'x * w')}", "x: f32[batch, 128, 128]"), batch=4)
    found = next(group for group in time.groups if "sum" in {node.op for node in group.group.nodes})
    assert found.busy[Unit.LANES] * V2.clock_hz == pytest.approx(7 * results / 8)


def test_more_examples_take_longer_and_more_memory() -> None:
    times = [timed(program("05_digits_cnn"), batch=batch) for batch in (64, 128, 256, 1024)]
    assert [time.seconds for time in times] == sorted(time.seconds for time in times)
    assert [time.held_bytes for time in times] == sorted(time.held_bytes for time in times)


def test_values_of_sixteen_bits_move_fewer_bytes() -> None:
    text = program("14_digits_resnet")
    base, half = timed(text, batch=256), timed(text, numerics=Numerics(activations="bf16"), batch=256)
    assert half.bytes["activations"] < 0.7 * base.bytes["activations"]
    assert half.bytes["inputs"] < 0.51 * base.bytes["inputs"]  # the labels are integers
    assert half.bytes["states"] == base.bytes["states"]


def test_a_target_of_which_too_little_is_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"tpu_v1 doesn't say sublanes, vector_alus and ici_bandwidth"):
        timed(NET, target=load_target("tpu_v1"))


def test_the_command_prints_parts_groups_and_assumptions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(PROGRAMS / "05_digits_cnn.tpu"), "--train", "-D", "batch=1024"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert "digits_cnn on tpu_v2: a step of 1,024 examples takes" in out
    for words in ("part", "backward", "longest groups", "forward: conv2.w", "hbm_latency_seconds"):
        assert words in out


def test_the_command_compares_numbers_of_cores(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(PROGRAMS / "04_digits_mlp.tpu"), "--train", "--cores", "1,2,8", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["cores"] for step in found["scaling"]] == [1, 2, 8]
    assert {step["examples"] for step in found["scaling"]} == {200}
    assert found["activations"] == "f32"


@each(
    [
        (["--train", "--batches", "3"], "--batches has no effect on a step of training"),
        (["--activations", "bf16"], "--activations is of a step of training, which --train asks for"),
        (["--train", "--target", "tpu_v1"], "tpu_v1 multiplies int8: it can't train"),
        (["--train", "--target", "tpu_v4i"], "tpu_v4i doesn't say sublanes, vector_alus and ici_bandwidth"),
    ]
)
def test_the_command_refuses(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["profile", str(PROGRAMS / "05_digits_cnn.tpu"), *arguments]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_step_that_does_not_fit_says_what_would(capsys: pytest.CaptureFixture[str]) -> None:
    small = ["--set", f"weight_memory_bytes={2**23}"]
    assert main(["profile", str(PROGRAMS / "05_digits_cnn.tpu"), "--train", *small]) == 0
    assert "are more than its 4 MiB of memory; --activations bf16" in " ".join(capsys.readouterr().out.split())


@pytest.mark.soak
def test_steps_beside_the_measured_ones(capsys: pytest.CaptureFixture[str]) -> None:
    """Dense networks within -20 % and +5 %, ResNet-50 within 15 % with what Google's computes with, its scaling within 5 points."""
    assert main(["paper", "--training", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    errors = [run["seconds"] / run["measured"] - 1 for run in found["paradnn"]]
    assert len(errors) == 13
    assert all(-0.21 <= error <= 0.05 for error in errors)
    assert sum(map(abs, errors)) / len(errors) <= 0.15
    assert set(found["resnet50"]) == {"v2-8", "v3-8", "v2-512"}
    for run in found["resnet50"].values():
        assert 0.85 <= run["images_per_second"] / run["measured"] <= 1.15
        assert 0.5 <= run["default_images_per_second"] / run["measured"] <= 0.7
    assert abs(found["scaling"]["ours"] - found["scaling"]["measured"]) <= 0.05


def test_a_dense_network_beside_its_profile() -> None:
    text = (PROGRAMS / "paper/paradnn.tpu").read_text()
    time = timed(text, 8, layers=8, nodes=4096, batch=16384)
    assert time.seconds == pytest.approx(0.1045, rel=0.1)
    assert 0.090 <= time.overlapped_seconds <= time.seconds


def test_published_programs_are_refused_where_there_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", "--training", "--programs", str(tmp_path)]) == 2
    assert "has no 11_resnet50.tpu" in capsys.readouterr().err
    assert main(["paper", "--training", "--target", "tpu_v3"]) == 2
    assert "--target has no effect on a step of training, which --training asks for" in " ".join(capsys.readouterr().err.split())
