"""The worked diffs of docs/adding.md, applied to a copy of the package: they fit, and do what the page says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command_line import run
from tests.support.worked import ROOT, WORKED, apply_diff, package_copy, run_on

PAGE = (ROOT / "docs" / "adding.md").read_text()

OPERATOR = """
import numpy as np
import tpucc
from tpucc.runtime.check import compare_with_reference, random_inputs

made = tpucc.compile_source("weights random(seed=1)\\nmodel m(x: f32[3, 300]):\\n    weight w: f32[300, 7]\\n    return square(x @ w)\\n")
inputs = random_inputs(made.runtime, 0)
assert not any(c.unequal for c in compare_with_reference(made.runtime, made.compilation.layers, inputs))
assert (made.run(inputs)["out"] >= 0).all()
assert [node.op for node in made.compilation.layers if node.op in ("fc", "vector")] == ["fc"], "square is fused into the product"
"""

PASS = """
import tpucc
from tpucc.ops.evaluate import evaluate
from tpucc.passes.drop_clamps import drop_clamps
from tpucc.passes.pipeline import PASSES
from tpucc.runtime.check import random_inputs

assert drop_clamps in PASSES
HEAD = "weights random(seed=1)\\nmodel m(x: f32[3, 30]):\\n    weight w: f32[30, 7]\\n"
for body, clamps in (("relu(relu6(x @ w))", 1), ("relu6(relu(x @ w))", 2), ("relu(relu(relu(x @ w)))", 1), ("relu(x @ w)", 1)):
    made = tpucc.compile_source(f"{HEAD}    return {body}\\n", level=1)
    before = made.compilation.graph
    after = drop_clamps.run(before, None)
    assert sum(node.op in ("relu", "relu6") for node in after) == clamps, body
    inputs = random_inputs(made.runtime, 0)
    old, new = evaluate(before, inputs), evaluate(after, inputs)
    assert all((old[a.node] == new[b.node]).all() for a, b in zip(before.outputs, after.outputs))
    assert drop_clamps.run(after, None) == after, "once is enough"
"""

TARGET = """
import tpucc
from tpucc.target import target_names

SOURCE = "weights random(seed=1)\\nmodel m(x: f32[3, 300]):\\n    weight w: f32[300, 7]\\n    return x @ w\\n"
assert "v1_small" in target_names()
small, whole = (tpucc.compile_source(SOURCE, target=name).stats for name in ("v1_small", "tpu_v1"))
assert small["tiles"] == 3 and whole["tiles"] == 2
"""


LAB = """
from pathlib import Path
import tpucc
from tpucc.labs.grading import check
from tpucc.labs.lab import Term
from tpucc.labs.start import start

lab, term = tpucc.lab.find("saturation"), Term("spring")
assert lab in tpucc.lab.labs() and lab == tpucc.lab.find(14)
start(lab, Path("mine"), term)
assert "{{" not in Path("mine/handout.md").read_text()
assert check(lab, Path("mine"), term).score == 0
Path("mine", lab.file).write_text(lab.material("reference.py", term))
assert check(lab, Path("mine"), term).score == 50
"""


@pytest.mark.soak
@pytest.mark.parametrize(("name", "script"), [("operator", OPERATOR), ("pass", PASS), ("target", TARGET), ("lab", LAB)])
def test_the_diff_does_what_the_page_says(name: str, script: str, tmp_path: Path) -> None:
    """The instruction's is in test_isa_tables.py."""
    folder = package_copy(tmp_path)
    apply_diff(folder, (WORKED / f"{name}.diff").read_text())
    done = run_on(folder, script)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_new_files_pass_the_linter_s_line_length() -> None:
    for path in WORKED.glob("*.diff"):
        assert max(map(len, path.read_text().splitlines())) <= 141, path.name


def test_the_pass_works_from_a_file_of_its_own(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the page says: without changing tpucc."""
    lines = (WORKED / "pass.diff").read_text().partition("@@\n")[2].partition("\n--- ")[0].splitlines()
    Path("mine.py").write_text("\n".join(line[1:] for line in lines if line.startswith("+")) + "\n")
    small.write_text("model m(x: f32[3, 30] in [-1.0, 1.0]):\n    return relu(relu6(x))\n")
    assert run("compile", small, "--pass", "mine.py", "--print-after", "drop-clamps", "--emit", "stats") == 0, capsys.readouterr().err
    printed = capsys.readouterr()
    firing, _, graph = (printed.out + printed.err).partition("graph m")
    assert "a clamp of a clamped value" in firing
    assert "relu6" in graph
    assert " relu(" not in graph
