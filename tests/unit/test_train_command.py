"""Training as a user meets it: what is printed and written, Ctrl-C, the cost of cores, one step as a graph and as a picture, the page."""

from __future__ import annotations

import errno
import json
import re
import shlex
import signal
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.support.cases import each
from tpucc.cli.main import main
from tpucc.diagnostics import Source
from tpucc.ir.parser import parse_graph
from tpucc.ir.printer import print_graph
from tpucc.machines.v2.links import all_reduce
from tpucc.ops import OPS
from tpucc.see.diagrams.paint import painted
from tpucc.target import load_target
from tpucc.training.heldout import HeldOut
from tpucc.training.plan import Plan
from tpucc.training.roles import Parts, Role, parts_of
from tpucc.training.start import step_of
from tpucc.training_page import picture_of
from tpucc.training_page.curves import held_out_svg, loss_svg, norms_svg, ranges_svg
from tpucc.training_page.step_graph import StepPicture

NETWORK = """
param batch = 16
weights random(seed=0)
examples "examples.npz"
optimizer adam(rate=0.02)

def dense(x, units, name):
    weight w: f32[x.shape[-1], units] = "{name}.w"
    weight b: f32[units] = "{name}.b"
    return x @ w + b

model net(x: f32[batch, 4]) -> f32[batch, 3]:
    return softmax(dense(tanh(dense(x, 8, "fc1")), 3, "fc2"))

train(x: f32[batch, 4], label: i32[batch] in [0, 2]) -> f32[]:
    return cross_entropy(net(x), label)
"""


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source with examples and a held-out set beside it, in the current folder: the class is the largest of three coordinates."""
    monkeypatch.chdir(tmp_path)
    x = np.random.default_rng(0).standard_normal((90, 4)).astype(np.float32)
    label = x[:, :3].argmax(axis=1).astype(np.int32)
    np.savez("examples.npz", x=x[:50], label=label[:50])
    np.savez("net_test.npz", x=x[50:], labels=label[50:])
    Path("net.tpu").write_text(NETWORK)
    return Path("net.tpu")


def command(*arguments: str | Path) -> int:
    return main(["train", *map(str, arguments)])


def interrupt(monkeypatch: pytest.MonkeyPatch, where: type, name: str, at: int) -> None:
    """Ctrl-C, the `at`-th time that a method is called."""
    method, calls = getattr(where, name), count(1)

    def pressed(*arguments: Any) -> Any:
        if next(calls) == at:
            signal.raise_signal(signal.SIGINT)
        return method(*arguments)

    monkeypatch.setattr(where, name, pressed)


@pytest.mark.parametrize("where", [(Plan, "run", 5), (HeldOut, "measure", 2)], ids=["in a step", "while it measures"])
def test_ctrl_c_writes_a_state_that_goes_on_to_the_same_bits(
    where: tuple[type, str, int], written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(written, "-o", "whole", "--epochs", "4", "--seed", "3", "-D", "batch=10") == 0
    with monkeypatch.context() as patch:
        interrupt(patch, *where)
        assert command(written, "-o", "a b", "--epochs", "4", "--seed", "3", "-D", "batch=10") == 130
    out = capsys.readouterr().out
    (line,) = re.findall(r"goes on to the same bits:\n  (tpucc.*)", out)
    words = shlex.split(line)
    assert words == ["tpucc", "train", "net.tpu", "-o", "a b", "-D", "batch=10", "--resume", "a b/state.npz"]
    assert main(words[1:]) == 0
    for name in ("weights.npz", "state.npz", "history.json"):
        assert Path("a b", name).read_bytes() == Path("whole", name).read_bytes()


def test_ctrl_c_again_while_files_are_written_leaves_those_of_before(
    written: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(written, "-o", "out", "--steps", "1") == 0
    before = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    interrupt(monkeypatch, Plan, "run", 3)
    interrupt(monkeypatch, Path, "write_bytes", 2)
    assert command(written, "-o", "out", "--epochs", "4") == 130
    assert "interrupted" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == before


def test_what_train_prints(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(written, "--steps", "4", "--cores", "4", "--target", "tpu_v2") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "net on 4 cores of tpu_v2: 67 weights, 50 examples, batch 16, adam(rate=0.02)"
    assert lines[1].split() == ["epoch", "loss", "held", "out", "seconds"]
    assert lines[3].startswith("epoch 2 so far: 1 of 3 steps, loss ")
    assert "of 272 bytes a step, by formula from the rates of tpu_v2" in "\n".join(lines[4:6])
    assert [line.split()[0] for line in lines[7:11]] == ["1", "2", "4", "8"]
    assert "408 bytes" in lines[9]
    assert all(len(line) <= 80 for line in lines)
    assert command(written, "--steps", "1", "--quiet") == 0
    assert capsys.readouterr() == ("", "")
    assert command(written, "--steps", "1", "--json", "--cores", "2") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["steps"], found["stopped"], found["all_reduce_by_formula"]["hops"]) == (1, False, 2)


@pytest.mark.long
def test_the_formula_is_of_the_machine_s_links(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Machines with the same arithmetic have other links; nothing is known of those of tpu_v4i."""
    weights, found = [], []
    for target in ("tpu_v2", "tpu_v3"):
        assert command(written, "-o", target, "--steps", "1", "--cores", "2", "--target", target, "--json") == 0
        found.append(json.loads(capsys.readouterr().out)["all_reduce_by_formula"]["seconds"])
        assert f"the rates of {target}" in Path(target, "report.html").read_text()
        weights.append(Path(target, "weights.npz").read_bytes())
    assert weights[0] == weights[1]
    assert found[0] > found[1]
    assert command(written, "--steps", "1", "--cores", "2", "--target", "tpu_v4i") == 0
    assert "by formula" not in capsys.readouterr().out


def test_the_cost_of_cores_is_of_those_that_divide_the_batch_of_a_machine(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a batch of 20 in two microbatches a core: 4 cores have parts of 2 or 3. A host has no links."""
    given: list[str | Path] = [written, "-o", "out", "--steps", "1", "--cores", "2", "--microbatches", "2", "-D", "batch=20"]
    assert command(*given, "--target", "tpu_v2") == 0
    out, page = capsys.readouterr().out, Path("out/report.html").read_text()
    assert re.findall(r"(?m)^ *(\d+) .* \d\.\d$", out) == ["1", "2"]
    assert re.findall(r"<tr><td>(\d+)</td>", page.partition('<section id="time"')[2]) == ["1", "2"]
    assert "from the rates of tpu_v2" in page
    assert command(*given) == 0
    assert "all-reduce of" not in capsys.readouterr().out
    assert 'id="cores"' not in Path("out/report.html").read_text()


def test_what_is_asked_for_in_vain(written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert command(written, "--steps", "1", "--epochs", "1") == 2
    assert "both epochs and steps" in capsys.readouterr().err
    monkeypatch.setattr(Plan, "run", None)  # before the first step
    assert command(written, "-o", "net.tpu") == 2
    assert "error E0505" in capsys.readouterr().err
    assert command(written, "--cores", "8", "-D", "batch=6") == 2
    assert "batch 6 can't be divided among 8 cores: 8 and 16 can" in capsys.readouterr().err


def test_a_training_that_fails_shows_the_line(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written.write_text(NETWORK.replace("adam(rate=0.02)", "sgd(rate=1e30)").replace("tanh", "relu"))
    assert command(written, "--steps", "9", "-o", "out") == 1
    err = capsys.readouterr().err
    assert "error E0944: in step " in err
    assert "return x @ w + b" in err
    assert list(Path("out").iterdir()) == []


@pytest.mark.long
def test_resuming_ends_where_it_was_to_end_or_where_it_is_told(written: Path) -> None:
    assert command(written, "-o", "out", "--steps", "4", "--quiet") == 0
    for asked, steps in ((["--epochs", "2"], 10), (["--steps", "1"], 5), ([], 19)):
        assert command(written, "-o", "more", "--quiet", "--resume", "out/state.npz", *asked) == 0
        assert json.loads(Path("more/history.json").read_text())["steps"] == steps


def test_the_cost_of_an_all_reduce_by_hand() -> None:
    """Of a megabyte: on a chip 2·½·1e6/150e9 s and 2 hops; one link 2·½·1e6/62e9 s more; two at once 2·½·(1e6 + 0.5e6)/124e9 s."""
    costs = {cores: all_reduce(1e6, cores, load_target("tpu_v2")) for cores in (1, 2, 4, 8, 16)}
    assert [cost.hops for cost in costs.values()] == [0, 2, 4, 6, 10]
    assert [cost.sent for cost in costs.values()] == [0, 1e6, 1.5e6, 1.75e6, 1.875e6]
    assert costs[1].seconds == 0
    chip = 1e6 / 150e9
    assert costs[2].seconds == pytest.approx(chip + 2e-6)
    assert costs[4].seconds == pytest.approx(chip + 1e6 / 62e9 + 4e-6)
    assert costs[8].seconds == pytest.approx(chip + 1e6 / 124e9 + 0.5e6 / 124e9 + 6e-6)
    assert costs[16].seconds == pytest.approx(chip + 1.5 * 1e6 / 124e9 + 0.25e6 / 124e9 + 10e-6)


def test_compile_train_writes_a_graph_that_reads_back_and_a_picture(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "net.tpu", "--train", "-o", "out", "--cores", "4"]) == 0
    text = Path("out/train.graph").read_text()
    graph = parse_graph(text, "train.graph", {name: known.attributes for name, known in OPS.items()})
    assert print_graph(graph) in text
    assert {path.name for path in Path("out").iterdir()} == {"train.graph", "train.svg", "train.dot", "time.svg"}
    out = capsys.readouterr().out
    for words in ("forward    6 operators", "all-reduce 5 operators", "state      812 bytes in 14 arrays", "kept       ", "4 cores"):
        assert words in out
    assert main(["compile", "net.tpu", "--train", "--quiet", "-o", "out", "--print-after", "logits"]) == 0
    assert "softmax_cross_entropy(" in capsys.readouterr().out


@each(
    [
        (["--print-after", "logts"], "did you mean logits?"),
        (["-O1"], "-O has no effect on a step of training"),
        (["--cores", "3"], "cores must be a power of two"),
        (["--cores", "8", "-D", "batch=6"], "batch 6 can't be divided among 8 cores: 8 and 16 can"),
    ]
)
def test_compile_train_refuses(arguments: list[str], message: str, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", "net.tpu", "--train", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_passes_lists_those_of_training_apart(capsys: pytest.CaptureFixture[str]) -> None:
    main(["passes"])
    _, _, training = capsys.readouterr().out.partition("of training")
    assert [name for name in re.findall(r"^([\w-]+)  ", training, re.MULTILINE) if name == "differentiate"] == ["differentiate"]


def picture(text: str, parts: int = 1) -> tuple[Parts, StepPicture]:
    model, step = step_of(Source("net.tpu", text), {}, parts)
    found = parts_of(step)
    return found, picture_of(model, found, Source("net.tpu", text))


RECURRENT = """
weights random(seed=0)
optimizer adam(rate=0.02)
model net(x: f32[8, 9, 4]) -> f32[8, 4]:
    weight k: f32[4, 4]
    weight r: f32[4, 4]
    h = x[:, 0]
    for t in range(9):
        h = tanh(x[:, t] @ k + h @ r)
    return h

train(x: f32[8, 9, 4], y: f32[8, 4]) -> f32[]:
    return mean_squared_error(net(x), y)
"""
NORMALISED = NETWORK.replace("tanh(dense(x, 8,", "normalised(dense(x, 8,").replace(
    "\nmodel",
    """
def normalised(x):
    weight gamma: f32[8]
    weight beta: f32[8]
    weight mean: f32[8]
    weight variance: f32[8]
    return relu(batch_norm(x, gamma, beta, mean, variance))

model""",
)


@pytest.mark.parametrize("text", [NETWORK, RECURRENT, NORMALISED], ids=["plain", "recurrent", "batch norm"])
@pytest.mark.parametrize("parts", [1, 4])
def test_every_operator_of_a_step_is_in_one_box_and_no_two_boxes_meet(text: str, parts: int) -> None:
    found, drawn = picture(text, parts)
    shown = [name for members in drawn.members for name in members]
    assert len(shown) == len(set(shown))
    left = {name for name in found.roles if name not in shown}
    assert {found.roles[name] for name in left} <= {Role.REDUCE}, "the mean of the loss and of moved averages has no box"
    rects = drawn.layout.boxes
    assert not [(a, b) for i, a in enumerate(rects) for b in rects[:i] if a.meets(b)]
    assert len(drawn.layout.routes) == len(drawn.diagram.edges)
    columns = [frame.rect for frame in drawn.layout.frames]
    titles = [drawn.diagram.clusters[frame.cluster].label for frame in drawn.layout.frames]
    assert [re.findall(r"([\w-]+) · ", title) for title in titles] == [
        ["forward", *(["statistics"] if text is NORMALISED else [])],
        ["backward"],
        ["optimizer", *(["all-reduce"] if parts > 1 else [])],
    ]
    counts = [int(found) for title in titles for found in re.findall(r" · (\d+)", title)]
    assert sum(counts) == len(found.roles)
    svg = painted(drawn.diagram, drawn.layout)
    assert all(f">{title}<" in svg for title in titles), "no title of a column is cut"
    assert columns[0].right < columns[1].left < columns[1].right < columns[2].left
    assert all(any(c.left <= r.left and r.right <= c.right and c.top <= r.top and r.bottom <= c.bottom for c in columns) for r in rects)


def test_gradients_stand_beside_the_operator_whose_rule_made_them() -> None:
    found, drawn = picture(NETWORK)
    home = {name: index for index, members in enumerate(drawn.members) for name in members}
    for forward, made in found.backward.items():
        for name in made:
            assert drawn.layout.boxes[home[name]].middle[1] == drawn.layout.boxes[home[forward]].middle[1]
    assert [update.key for update in found.updates] == ["fc1.w", "fc1.b", "fc2.w", "fc2.b"]
    assert {len(update.nodes) for update in found.updates} == {12}
    assert [node.name for node in found.kept] == ["x", "label", "tanh", "add.1"]
    assert found.kept_bytes == 16 * 4 * (4 + 1 + 8 + 3)
    shares = {box.title: [str(kind) for kind, _ in box.shares] for box in drawn.diagram.boxes}
    assert shares["gradient of matmul"] == ["matrix", "move"], "what moves rows for the product isn't the matrix unit's"
    assert shares["next fc1.w"] == []


def test_a_value_and_its_view_are_kept_once() -> None:
    """The rules of `sigmoid` and of the product read the same 8 × 12 floats; the view of a weight is kept with the states."""
    found, _ = picture("""
weights random(seed=0)
optimizer sgd(rate=0.1)
model net(x: f32[8, 4, 3]) -> f32[8, 2]:
    weight w: f32[24]
    weight u: f32[3]
    return reshape(sigmoid(x + u), [8, 12]) @ reshape(w, [12, 2])

train(x: f32[8, 4, 3], y: f32[8, 2]) -> f32[]:
    return mean_squared_error(net(x), y)
""")
    assert [(node.name, node.type.size) for node in found.kept] == [("y", 16), ("sigmoid", 96), ("matmul", 16)]
    assert found.kept_bytes == 4 * (16 + 96 + 16)
    read = {name for node in found.graph if found.roles.get(node.name) is Role.BACKWARD for name in node.operands}
    assert {"sigmoid", "reshape"} < read


def test_a_recurrence_from_zeros_is_divided_among_cores() -> None:
    """The product of the first step has the batch, and depends on no input."""
    found, _ = picture(RECURRENT.replace("h = x[:, 0]", "h = zeros([8, 4])"), parts=4)
    assert {update.key for update in found.updates} == {"k", "r"}


def test_a_long_recurrence_is_one_box() -> None:
    _, drawn = picture(RECURRENT.replace("9", "30"))
    assert len(drawn.diagram.main_boxes) < 16
    assert any("30 × " in box.title for box in drawn.diagram.boxes)


def test_a_large_forward_part_is_grouped_by_the_calls_of_the_source() -> None:
    """Four times 16 operators of a `def`, an addition past two of them: each call is a box with its line."""
    blocks = {"fc1": "tanh", "fc2": "relu", "fc3": "sigmoid", "fc4": "tanh"}
    block = """
def block(x, name):
    weight w: f32[4, 4] = "{name}.w"
    weight gamma: f32[4] = "{name}.gamma"
    weight beta: f32[4] = "{name}.beta"
    weight mean: f32[4] = "{name}.mean"
    weight variance: f32[4] = "{name}.variance"
    return batch_norm(x @ w, gamma, beta, mean, variance)
"""
    head = "\nweights random(seed=0)\noptimizer sgd(rate=0.1)\n" + block + "\nmodel net(x: f32[8, 4]) -> f32[8, 4]:\n"
    body = "".join(f'    x = {"x + " if name == "fc3" else ""}{function}(block(x, "{name}"))\n' for name, function in blocks.items())
    rest = "    return x\n\ntrain(x: f32[8, 4], y: f32[8, 4]) -> f32[]:\n    return mean_squared_error(net(x), y)\n"
    _, drawn = picture(head + body + rest)
    boxes = [box for box in drawn.diagram.boxes if box.stands_for > 1]
    first = head.count("\n") + 1
    layers = [f"line {first + place}" for place, _ in enumerate(blocks)]
    assert [(box.title, box.details[0]) for box in boxes if box.cluster == 0] == [("block", layer) for layer in layers]
    assert {box.stands_for for box in boxes if box.cluster == 0} == {16}
    made = [box.details[0] for box in boxes if box.title == "gradients of block" and box.cluster == 1]
    assert made == layers[::-1]
    words = ("tanh" if n.bit_count() % 2 else "sigmoid" for n in range(32))  # no stretch comes three times in a row
    plain = head + "    weight w: f32[4]\n    x = x + w\n" + "".join(f"    x = {word}(x)\n" for word in words) + rest
    titles = [box.title for box in picture(plain)[1].diagram.boxes if box.cluster == 0 and box.stands_for > 1]
    assert titles == ["net"], "the only call"


def test_the_page_has_every_part_and_the_same_bytes_again(written: Path) -> None:
    for folder in ("one", "two"):
        assert command(written, "-o", folder, "--epochs", "2", "--quiet") == 0
    page = Path("one/report.html").read_text()
    assert page == Path("two/report.html").read_text()
    assert re.findall(r'<section id="(\w+)"', page) == ["summary", "curves", "weights", "step", "rules", "passes", "settings"]
    assert re.findall(r'id="(loss|held-out|norms|ranges|train)" role="img"', page) == ["loss", "held-out", "norms", "ranges", "train"]
    assert page.count('data-line="') == NETWORK.count("\n")
    assert len(re.findall("<template id", page)) == 4 + 1 + 4, "of backward boxes, the shared one, the weights"
    for outside in ("http://", "https://", "src=", "<link"):
        assert outside not in page.replace("http://www.w3.org/2000/svg", "")


def test_the_page_counts_weights_apart_from_statistics_and_optimizer_apart_from_all_reduces(
    written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 67 + 4 × 8 elements the 16 of the mean and the variance are no weights: each of the two takes 3 operators to move."""
    written.write_text(NORMALISED)
    counts = []
    for cores in ("1", "4"):
        assert command(written, "-o", "out", "--epochs", "1", "--cores", cores) == 0
        assert "83 weights, 16 statistics," in capsys.readouterr().out
        page = Path("out/report.html").read_text()
        facts = dict(re.findall(r"<dt>([\w-]+)</dt><dd>([^<]*)", page))
        assert (facts["weights"], facts["statistics"]) == ("83", "6 operators")
        assert facts.get("all-reduce") == (None if cores == "1" else "9 operators")
        counts.append([facts[name] for name in ("forward", "statistics", "backward", "optimizer")])
        assert "move 16 averages of batch normalisation" in page
        ranges, statistics = (page.partition(f'id="{key}" role="img"')[2].partition("</svg>")[0] for key in ("ranges", "statistics"))
        assert "Of the weights, " in ranges
        assert ">variance<" not in ranges
        assert "Of the statistics of batch normalisation, " in statistics
    assert counts[0] == counts[1]


def test_a_page_without_a_step_and_without_a_held_out_set(written: Path) -> None:
    Path("net_test.npz").unlink()
    assert command(written, "-o", "none", "--epochs", "0", "--quiet") == 0
    assert re.findall(r'<section id="(\w+)"', Path("none/report.html").read_text())[:2] == ["summary", "step"]
    assert command(written, "-o", "some", "--steps", "1", "--quiet") == 0
    assert 'id="held-out"' not in Path("some/report.html").read_text()


def test_the_mean_of_an_epoch_stands_over_its_steps() -> None:
    """Six steps on 532 pixels: the second epoch is from step 4 to step 5, and the last step is in no epoch."""
    svg = loss_svg([[3.0, 2.0, 1.0], [2.0, 1.0]], [0.5])
    bars = [each for each in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}rect") if len(each)]
    pixels = 532 / 6
    found = [(float(bar.get("x", "")), float(bar.get("width", ""))) for bar in bars]
    assert found == [pytest.approx((64 + first * pixels, wide * pixels), abs=0.1) for first, wide in ((1, 2), (4, 1))]
    assert [bar[0].text for bar in bars] == ["epoch 1: 2.00000", "epoch 2: 1.50000"]
    assert "The loss of a step goes from 3 to 0.5 in 6 steps" in svg
    single = loss_svg([[3.0], [2.0]], [])
    assert "bold one" not in single
    assert "epoch 1" not in single, "the steps' line is not hidden"


@each([0.0, 1e-20, 1.0, 1e20])
def test_charts_of_any_size_of_number(scale: float) -> None:
    series = {"w": [scale, 0.5 * scale], "a <b> & c": [0.0, scale]}
    found = [
        loss_svg([[scale, scale], [0.0]], [scale]),
        held_out_svg([{"rmse": scale, "r2": 0.0}]),
        norms_svg(series),
        ranges_svg({key: [-value for value in values] for key, values in series.items()}, series),
        norms_svg({f"w{i}": [1.0] for i in range(100)}),
    ]
    for svg in found:
        assert "nan" not in ElementTree.tostring(ElementTree.fromstring(svg), "unicode").replace("nance", "")
    assert "has the largest norm, " in found[2]
    assert "Euclidean norms" in found[2]
    assert "The first 60 of 100 weights." in found[-1]


def test_the_titles_of_charts_speak_of_all_arrays() -> None:
    """Of 61, of which the last isn't drawn."""
    series = {f"w{number}": [1.0 + number] for number in range(61)}
    assert "The gradient of w60 has the largest norm, 61<" in norms_svg(series)
    statistics = ranges_svg({key: [0.0] for key in series}, series, "statistics")
    assert "Of the statistics of batch normalisation, w60 reaches furthest: 0 … 61<" in statistics
    assert "The first 60 of 61 statistics." in statistics


def test_files_are_written_though_nobody_reads_what_is_printed(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "closed")

    monkeypatch.setattr("click.echo", closed)
    assert command(written, "-o", "out", "--epochs", "2", "-D", "batch=30") == 0
    assert len(json.loads(Path("out/history.json").read_text())["epochs"]) == 2


@each(
    [
        (("--batch", "8"), "train has no option --batch: the batch is a param of the source: -D batch="),
        (("--lr", "0.1"), "train has no option --lr: the source says it: optimizer adam(rate="),
        (("--cores", str(2**4000)), "cores is at most 2,147,483,647, found a number of 4,001 bits"),
        (("--steps", str(10**19)), "at most 2,147,483,647 steps"),
        (("-o", "net.tpu/out"), "can't write net.tpu: not a directory"),
    ]
)
def test_what_cannot_be_asked(options: tuple[str, ...], words: str, written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command(written, *options) == 2
    assert words in capsys.readouterr().err
